// Attention with heads, masks and ragged ends.
//
//     ./multihead INPUT OUTPUT
//
// This file reads INPUT, sends Q, K and V of all heads to the GPU, calls your kernel, and writes OUTPUT. The kernel is
// yours: look for TODO. As it stands, the program compiles, runs, and writes zeros, which fails every test.
//
// Theory of operation
//
//     TODO: replace these lines with yours, in a few sentences. What does one thread compute, and what one block? Which
//     data is in registers, in shared memory, in global memory? Which threads wait for which, and why?

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

// A CUDA call reports an error only by its result, and a kernel by the result of a later call. Check every result.
#define CUDA_CHECK(call)                                                                                       \
    do {                                                                                                       \
        const cudaError_t error_ = (call);                                                                     \
        if (error_ != cudaSuccess) {                                                                           \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));    \
            std::exit(1);                                                                                      \
        }                                                                                                      \
    } while (0)

// ---------------------------------------------------------------------------------------------- kernel

// The header of INPUT: B, H, N, d, causal, scale.
struct Header {
    int32_t batches, heads, rows, dim, causal;
    float scale;
};

// input: Q, K, V (each rows × dim) of batch 0, head 0, then of batch 0, head 1, ...; output: O in the same order.
__global__ void attention(const float* input, float* output, Header h) {
    // TODO: your kernel. rows need not be a multiple of your tile; with causal, row i sees keys 0 to i only.
}

static void launch_attention(const float* input, float* output, const Header& h) {
    // TODO: blocks and threads that fit your kernel. gridDim.y and gridDim.z are at most 65535; B · H · N can be more.
    attention<<<1, 128>>>(input, output, h);
    CUDA_CHECK(cudaGetLastError());    // finds a refused launch: too many threads, too much shared memory, ...
}

// ------------------------------------------------------------------------------------------------ host

[[noreturn]] static void fail(const char* path, const char* what) {
    std::fprintf(stderr, "%s: %s\n", path, what);
    std::exit(1);
}

static void read_exactly(FILE* file, void* to, size_t bytes, const char* path) {
    if (std::fread(to, 1, bytes, file) != bytes) fail(path, "is too short");
}

static void write_file(const char* path, const std::vector<float>& values) {
    FILE* const file = std::fopen(path, "wb");
    if (!file) fail(path, "cannot be opened for writing");
    const bool written = std::fwrite(values.data(), sizeof(float), values.size(), file) == values.size();
    if (std::fclose(file) != 0 || !written) fail(path, "cannot be written (disk full?)");
}

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s INPUT OUTPUT\n", argv[0]);
        return 2;
    }
    FILE* const in = std::fopen(argv[1], "rb");
    if (!in) fail(argv[1], "cannot be opened for reading");
    Header h;
    read_exactly(in, &h, sizeof h, argv[1]);
    if (h.batches < 1 || h.heads < 1 || h.rows < 1) fail(argv[1], "the header's B, H or N is not legal");
    if (h.dim != 16 && h.dim != 32 && h.dim != 64 && h.dim != 128) fail(argv[1], "d must be 16, 32, 64 or 128");
    const size_t count = size_t(h.batches) * h.heads * h.rows * h.dim;    // floats in O
    std::vector<float> host(3 * count);
    read_exactly(in, host.data(), 3 * count * sizeof(float), argv[1]);
    std::fclose(in);

    float *input, *output;
    CUDA_CHECK(cudaMalloc(&input, 3 * count * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&output, count * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(input, host.data(), 3 * count * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(output, 0, count * sizeof(float)));
    launch_attention(input, output, h);
    host.resize(count);
    CUDA_CHECK(cudaMemcpy(host.data(), output, count * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(input));
    CUDA_CHECK(cudaFree(output));
    write_file(argv[2], host);
    return 0;
}
