// What the wrong programs of this folder share: naive.cu, with a macro at each place where one goes wrong.
//
//     SCALE(d)            what scores are multiplied with          1 / sqrt(d)
//     KT_INDEX(x, key)    where element (x, key) of Kᵀ lies        x * n + key
//     SUMMED(n)           how many keys are summed over            n
//     DIVISOR             what the exponentials are divided by     sum
//     INPUT_OF(batch)     where a batch of the input begins        3 * matrix * batch
#pragma once

#ifndef SCALE
#define SCALE(d) (1.0f / sqrtf(float(d)))
#endif
#ifndef KT_INDEX
#define KT_INDEX(x, key) (size_t(x) * n + (key))
#endif
#ifndef SUMMED
#define SUMMED(n) (n)
#endif
#ifndef DIVISOR
#define DIVISOR sum
#endif
#ifndef INPUT_OF
#define INPUT_OF(batch) 3 * matrix * (batch)
#endif

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

// ---------------------------------------------------------------------------------------------- kernel

#define CUDA_CHECK(call)                                                                                       \
    do {                                                                                                       \
        const cudaError_t error_ = (call);                                                                     \
        if (error_ != cudaSuccess) {                                                                           \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));    \
            std::exit(1);                                                                                      \
        }                                                                                                      \
    } while (0)

// kt = kᵀ: d × n from n × d. Grid: at least n * d threads.
__global__ void transpose(const float* k, float* kt, int n, int d) {
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < n * d) kt[KT_INDEX(index % d, index / d)] = k[index];
}

// scores = scale * q kt: n × n from n × d and d × n. Grid: n / 32 × n / 8 blocks of 32 × 8 threads.
__global__ void scores_of(const float* q, const float* kt, float* scores, int n, int d, float scale) {
    const int key = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.0f;
    for (int x = 0; x < d; ++x) sum += q[row * d + x] * kt[size_t(x) * n + key];
    scores[size_t(row) * n + key] = sum * scale;
}

// Softmax of every row in place. Grid: n blocks of 32 threads: one warp for each row.
__global__ void softmax_rows(float* scores, int n) {
    float* const row = scores + size_t(blockIdx.x) * n;
    float most = -INFINITY, sum = 0.0f;
    for (int key = threadIdx.x; key < n; key += 32) most = fmaxf(most, row[key]);
    for (int lane = 1; lane < 32; lane *= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, lane));
    for (int key = threadIdx.x; key < SUMMED(n); key += 32) sum += row[key] = expf(row[key] - most);
    for (int lane = 1; lane < 32; lane *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    for (int key = threadIdx.x; key < n; key += 32) row[key] /= DIVISOR;
}

// o = p v: n × d from n × n and n × d. Grid: d / 32 × n / 8 blocks of 32 × 8 threads.
__global__ void output_of(const float* p, const float* v, float* o, int n, int d) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.0f;
    for (int key = 0; key < SUMMED(n); ++key) sum += p[size_t(row) * n + key] * v[size_t(key) * d + column];
    o[size_t(row) * d + column] = sum;
}

static void launch_attention(const float* q, const float* k, const float* v, float* kt, float* scores, float* o, int n,
                             int d) {
    const dim3 threads(32, 8);
    transpose<<<n * d / 256, 256>>>(k, kt, n, d);
    scores_of<<<dim3(n / 32, n / 8), threads>>>(q, kt, scores, n, d, SCALE(d));
    softmax_rows<<<n, 32>>>(scores, n);
    output_of<<<dim3(d / 32, n / 8), threads>>>(scores, v, o, n, d);
    CUDA_CHECK(cudaGetLastError());
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

    // Scores of one batch at a time: N² floats, used again for the next batch.
    float *qkv, *kt, *scores, *o;
    CUDA_CHECK(cudaMalloc(&qkv, 3 * matrix * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&kt, matrix * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&scores, size_t(n) * n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&o, matrix * sizeof(float)));
    for (int batch = 0; batch < batches; ++batch) {
        const float* const from = input.data() + INPUT_OF(batch);
        CUDA_CHECK(cudaMemcpy(qkv, from, 3 * matrix * sizeof(float), cudaMemcpyHostToDevice));
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
