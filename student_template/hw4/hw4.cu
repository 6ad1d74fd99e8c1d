// Homework 4: attention on a GPU.
//
//     ./hw4 INPUT OUTPUT
//
// This file reads INPUT, sends Q, K and V to the GPU, calls your kernel, and writes OUTPUT. The kernel is yours: look
// for TODO. As it stands, the program compiles, runs, and writes zeros, which fails every test.
//
// Theory of operation
//
//     TODO: replace these lines with yours, in a few sentences. What does one thread compute, and what one block? Which
//     data is in registers, in shared memory, in global memory? Which threads wait for which, and why?

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

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

// Attention of one batch: o = softmax(q kᵀ / sqrt(d)) v. All four are n × d, row-major: element (row, column) of q
// is q[row * d + column].
__global__ void attention(const float* q, const float* k, const float* v, float* o, int n, int d) {
    // TODO: your kernel. Begin with a correct version, even if it is slow: one thread per query row that
    // goes through all keys twice (for the maximum, then for the sum), or once with the handout's running m and l.
}

static void launch_attention(const float* q, const float* k, const float* v, float* o, int n, int d) {
    // TODO: blocks and threads that fit your kernel. A block has at most 1024 threads; gridDim.x may be 2^31 - 1,
    // gridDim.y and gridDim.z at most 65535.
    const int threads = 128;
    const int blocks = (n + threads - 1) / threads;
    attention<<<blocks, threads>>>(q, k, v, o, n, d);
    CUDA_CHECK(cudaGetLastError());    // finds a refused launch: too many threads, too much shared memory, ...
}

// ------------------------------------------------------------------------------------------------ files

// INPUT:  int32 B, N, d; then for each batch its Q, K and V, each N × d float32.
// OUTPUT: for each batch its O, N × d float32. No header.

static void read_exactly(FILE* file, void* to, size_t bytes, const char* path) {
    if (std::fread(to, 1, bytes, file) != bytes) {
        std::fprintf(stderr, "hw4: %s is too short\n", path);
        std::exit(1);
    }
}

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s INPUT OUTPUT\n", argv[0]);
        return 2;
    }
    FILE* const in = std::fopen(argv[1], "rb");
    if (!in) return std::perror(argv[1]), 1;
    FILE* const out = std::fopen(argv[2], "wb");
    if (!out) return std::perror(argv[2]), 1;

    int32_t batches, n, d;
    read_exactly(in, &batches, sizeof batches, argv[1]);
    read_exactly(in, &n, sizeof n, argv[1]);
    read_exactly(in, &d, sizeof d, argv[1]);

    // Sizes are size_t: the largest testcases have more bytes than an int can count.
    const size_t matrix = size_t(n) * d;    // floats in one of Q, K, V, O
    const size_t matrix_bytes = matrix * sizeof(float);

    // One batch at a time: simple, and it fits in any memory. TODO, once it is right: more batches at a time, since
    // one small batch does not fill a GPU, and every copy and launch costs some microseconds.
    float* const host = static_cast<float*>(std::malloc(3 * matrix_bytes));
    if (!host) return std::fprintf(stderr, "hw4: not enough memory\n"), 1;
    float *qkv, *o;
    CUDA_CHECK(cudaMalloc(&qkv, 3 * matrix_bytes));
    CUDA_CHECK(cudaMalloc(&o, matrix_bytes));
    CUDA_CHECK(cudaMemset(o, 0, matrix_bytes));

    for (int batch = 0; batch < batches; ++batch) {
        read_exactly(in, host, 3 * matrix_bytes, argv[1]);
        CUDA_CHECK(cudaMemcpy(qkv, host, 3 * matrix_bytes, cudaMemcpyHostToDevice));
        launch_attention(qkv, qkv + matrix, qkv + 2 * matrix, o, n, d);
        CUDA_CHECK(cudaMemcpy(host, o, matrix_bytes, cudaMemcpyDeviceToHost));    // waits for the kernel
        if (std::fwrite(host, 1, matrix_bytes, out) != matrix_bytes) return std::perror(argv[2]), 1;
    }

    CUDA_CHECK(cudaFree(o));
    CUDA_CHECK(cudaFree(qkv));
    std::free(host);
    std::fclose(in);
    if (std::fclose(out) != 0) return std::perror(argv[2]), 1;
    return 0;
}
