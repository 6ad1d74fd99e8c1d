// Warm-up 3: attention, one step at a time.
//
//     ./attention_naive INPUT OUTPUT
//
// This file reads INPUT, sends Q, K and V of one batch after the other to the GPU, calls your kernels, and writes
// OUTPUT. The kernels are yours: look for TODO. As it stands, the program compiles, runs, and writes zeros, which fails
// every test.
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

// kt = kᵀ: d × n from n × d.
__global__ void transpose(const float* k, float* kt, int n, int d) {
    // TODO
}

// scores = scale * q kt: n × n from n × d and d × n. Your matrix product of warm-up 1.
__global__ void scores_of(const float* q, const float* kt, float* scores, int n, int d, float scale) {
    // TODO
}

// Softmax of every row of scores, in place. Your softmax of warm-up 2.
__global__ void softmax_rows(float* scores, int n) {
    // TODO
}

// o = p v: n × d from n × n and n × d. The matrix product again.
__global__ void output_of(const float* p, const float* v, float* o, int n, int d) {
    // TODO
}

static void launch_attention(const float* q, const float* k, const float* v, float* kt, float* scores, float* o, int n,
                             int d) {
    // TODO: blocks and threads that fit your kernels. They run one after the other, in this order.
    transpose<<<1, 128>>>(k, kt, n, d);
    scores_of<<<1, 128>>>(q, kt, scores, n, d, 1.0f / sqrtf(float(d)));
    softmax_rows<<<1, 128>>>(scores, n);
    output_of<<<1, 128>>>(scores, v, o, n, d);
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
    if (batches < 1 || n < 128 || n > 32768 || (d != 32 && d != 64)) fail(argv[1], "B, N or d is not legal");
    const size_t matrix = size_t(n) * d;
    std::vector<float> input(3 * matrix * batches), output(matrix * batches);
    read_exactly(in, input.data(), input.size() * sizeof(float), argv[1]);
    std::fclose(in);

    // The scores of one batch at a time: N² floats, reused for the next batch.
    float *qkv, *kt, *scores, *o;
    CUDA_CHECK(cudaMalloc(&qkv, 3 * matrix * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&kt, matrix * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&scores, size_t(n) * n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&o, matrix * sizeof(float)));
    for (int batch = 0; batch < batches; ++batch) {
        const float* const from = input.data() + 3 * matrix * batch;
        CUDA_CHECK(cudaMemcpy(qkv, from, 3 * matrix * sizeof(float), cudaMemcpyHostToDevice));
        CUDA_CHECK(cudaMemset(o, 0, matrix * sizeof(float)));
        launch_attention(qkv, qkv + matrix, qkv + 2 * matrix, kt, scores, o, n, d);
        CUDA_CHECK(cudaMemcpy(output.data() + matrix * batch, o, matrix * sizeof(float), cudaMemcpyDeviceToHost));
    }
    CUDA_CHECK(cudaFree(qkv));
    CUDA_CHECK(cudaFree(kt));
    CUDA_CHECK(cudaFree(scores));
    CUDA_CHECK(cudaFree(o));
    write_file(argv[2], output);
    return 0;
}
