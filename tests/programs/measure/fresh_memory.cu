// What does a program find in GPU memory that it has just allocated?
//
// fresh_memory mark PATTERN   writes PATTERN into all memory it can get and exits without freeing it
// fresh_memory look PATTERN   counts zeros, NaN bits (all ones) and PATTERN in all memory it can get
// fresh_memory busy PATTERN   writes PATTERN into 1 GiB over and over, for five seconds
//
// Memory comes in blocks of 1 GiB until none is to be had. Prints one line of JSON: bytes, and the shares of words.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

constexpr size_t kBlockBytes = size_t(1) << 30;

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                 \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

__global__ void write(unsigned *words, size_t count, unsigned pattern)
{
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x)
        words[i] = pattern;
}

__global__ void look(const unsigned *words, size_t count, unsigned pattern, unsigned long long *found)
{
    unsigned long long zeros = 0, nans = 0, marks = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
        zeros += words[i] == 0;
        nans += words[i] == 0xFFFFFFFFu;
        marks += words[i] == pattern;
    }
    atomicAdd(&found[0], zeros);
    atomicAdd(&found[1], nans);
    atomicAdd(&found[2], marks);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: fresh_memory mark|look|busy PATTERN\n");
        return 2;
    }
    bool marking = strcmp(argv[1], "mark") == 0;
    unsigned pattern = strtoul(argv[2], nullptr, 0);
    unsigned long long *found, counts[3];
    CHECK(cudaMalloc(&found, sizeof(counts)));
    CHECK(cudaMemset(found, 0, sizeof(counts)));
    if (strcmp(argv[1], "busy") == 0) {
        unsigned *block;
        CHECK(cudaMalloc(&block, kBlockBytes));
        auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
        while (std::chrono::steady_clock::now() < end) {
            for (int i = 0; i < 100; ++i) write<<<4096, 256>>>(block, kBlockBytes / 4, pattern);
            CHECK(cudaDeviceSynchronize());
        }
        return 0;
    }
    std::vector<unsigned *> blocks;
    for (unsigned *block; cudaMalloc(&block, kBlockBytes) == cudaSuccess;) blocks.push_back(block);
    cudaGetLastError();  // the allocation that did not fit
    for (unsigned *block : blocks) {
        if (marking)
            write<<<4096, 256>>>(block, kBlockBytes / 4, pattern);
        else
            look<<<4096, 256>>>(block, kBlockBytes / 4, pattern, found);
        CHECK(cudaGetLastError());
    }
    CHECK(cudaMemcpy(counts, found, sizeof(counts), cudaMemcpyDeviceToHost));
    double words = blocks.size() * double(kBlockBytes / 4);
    printf("{\"bytes\": %.0f, \"zero\": %.9g, \"nan\": %.9g, \"mark\": %.9g}\n", 4 * words,
           words ? counts[0] / words : 0, words ? counts[1] / words : 0, words ? counts[2] / words : 0);
    return 0;
}
