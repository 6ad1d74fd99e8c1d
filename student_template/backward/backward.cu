// Attention and its gradient.
//
//     ./backward INPUT OUTPUT
//
// This file reads INPUT, sends Q, K, V and dO to the GPU, calls your kernels, and writes OUTPUT. The kernels are yours:
// look for TODO. As it stands, the program compiles, runs, and writes zeros, which fails every test.
//
// Kernels with "forward" (or "fwd") in their name are timed as the forward pass, those with "backward" (or "bwd") as
// the backward pass. Keep these words in the names.
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

// The arguments of every kernel, all in device memory. `input` holds Q, K, V, dO (each n × d) of batch 0, of batch 1,
// ...; o, dq, dk, dv each hold all batches one after the other. lse and dot have one number per row, for the backward
// pass: the logarithm of the sum of the row's exponentials, and D = dO . O.
struct Problem {
    const float* input;
    float *o, *dq, *dk, *dv, *lse, *dot;
    int batches, n, d;
};

// Your tiles, and the shared memory that they take in a block: Q, K, V, dO and a tile of scores. The compiler checks
// that they fit into the 48 KiB that every GPU gives a block by default. TODO: adapt this to your kernel.
constexpr int kTile = 32, kMostColumns = 64;
constexpr size_t kSharedBytes = sizeof(float) * (4 * kTile * kMostColumns + kTile * kTile);
static_assert(kSharedBytes <= 48 * 1024, "a block has 48 KiB of shared memory");

// O, and for every row lse, the logarithm of the sum of its exponentials. From lse the backward pass computes any
// probability again: p = exp(s - lse).
__global__ void attention_forward(Problem a, float scale) {
    // TODO
}

// dQ, dK, dV. For each tile, compute S again, P = exp(S - lse), dP = dO Vᵀ, dS = P ∘ (dP - D), and add to dQ, dK, dV.
__global__ void attention_backward(Problem a, float scale) {
    // TODO. Where several blocks add to the same values, use atomicAdd. dQ, dK and dV are zero at the start.
}

static void launch(const Problem& a) {
    // TODO: blocks and threads that fit your kernels.
    const float scale = 1.0f / sqrtf(float(a.d));
    attention_forward<<<1, 128>>>(a, scale);
    attention_backward<<<1, 128>>>(a, scale);
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
    int32_t batches, n, d;
    read_exactly(in, &batches, sizeof batches, argv[1]);
    read_exactly(in, &n, sizeof n, argv[1]);
    read_exactly(in, &d, sizeof d, argv[1]);
    if (batches < 1 || n < 128 || n > 32768 || n % 128 != 0 || (d != 32 && d != 64))
        fail(argv[1], "the header's B, N or d is not legal");
    const size_t plane = size_t(batches) * n * d;    // floats in each of the eight tensors, of all batches
    std::vector<float> host(4 * plane);
    const size_t bytes = 4 * plane * sizeof(float);
    read_exactly(in, host.data(), bytes, argv[1]);
    std::fclose(in);

    float *input, *output, *lse, *dot;
    CUDA_CHECK(cudaMalloc(&input, bytes));
    CUDA_CHECK(cudaMalloc(&output, bytes));
    CUDA_CHECK(cudaMalloc(&lse, size_t(batches) * n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&dot, size_t(batches) * n * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(input, host.data(), bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(output, 0, bytes));
    const Problem problem = {input, output, output + plane, output + 2 * plane, output + 3 * plane,
                             lse,   dot,    batches,        n,                  d};
    launch(problem);
    CUDA_CHECK(cudaMemcpy(host.data(), output, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(input));
    CUDA_CHECK(cudaFree(output));
    CUDA_CHECK(cudaFree(lse));
    CUDA_CHECK(cudaFree(dot));
    write_file(argv[2], host);
    return 0;
}
