// What the honest variants share: a right kernel and the reading and writing of files. Each variant does one thing in a
// way that a grader might take for a mistake or a cheat, and must pass.
//
// Theory of operation
//
//   A block of kWarps warps computes kWarps rows of O; a warp computes one. It walks over the keys 32 at a time: lane i
//   computes the score of key i, the warp agrees on the maximum m and the sum l (online softmax), then each lane adds to
//   its D / 32 columns of the sum. Grid: batches * n / kWarps blocks. No shared memory: K and V come from the caches.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

struct Shape {
    int32_t batches, n, d;
    size_t count() const { return size_t(batches) * n * d; }    // values of O; the input has three times as many
};

constexpr int kWarps = 4;

template <typename Type>
__device__ Type over_warp(Type value, Type (*combine)(Type, Type)) {
    for (int distance = 16; distance > 0; distance /= 2) value = combine(value, __shfl_xor_sync(~0u, value, distance));
    return value;
}

__device__ inline float larger(float a, float b) { return fmaxf(a, b); }
__device__ inline float added(float a, float b) { return a + b; }

// Row `row` of all rows of all batches, by the calling warp.
template <int D>
__device__ void attention_row(const float* input, float* output, int n, size_t row) {
    const int lane = threadIdx.x % 32;
    const size_t batch = row / n, size = size_t(n) * D;
    const float *const q = input + batch * 3 * size + row % n * D, *const k = input + (batch * 3 + 1) * size, *const v = k + size;
    const float scale = 1.0f / sqrtf(float(D));
    float m = -INFINITY, l = 0.0f, low = 0.0f, high = 0.0f;
    for (int first = 0; first < n; first += 32) {
        float s = 0.0f;
        for (int x = 0; x < D; ++x) s += q[x] * k[size_t(first + lane) * D + x];
        s *= scale;
        const float top = fmaxf(m, over_warp(s, larger)), rescale = expf(m - top), p = expf(s - top);
        l = l * rescale + over_warp(p, added);
        low *= rescale;
        high *= rescale;
        for (int key = 0; key < 32; ++key) {
            const float weight = __shfl_sync(~0u, p, key);
            low += weight * v[size_t(first + key) * D + lane];
            if (D == 64) high += weight * v[size_t(first + key) * D + lane + 32];
        }
        m = top;
    }
    output[row * D + lane] = low / l;
    if (D == 64) output[row * D + lane + 32] = high / l;
}

template <int D>
__global__ void attention(const float* input, float* output, int n, size_t rows) {
    const size_t row = blockIdx.x * size_t(blockDim.x / 32) + threadIdx.x / 32;
    if (row < rows) attention_row<D>(input, output, n, row);
}

// Launches the kernel for `batches` batches.
inline void launch(const float* input, float* output, int batches, int n, int d, cudaStream_t stream = 0, int warps = kWarps) {
    const size_t rows = size_t(batches) * n;
    const unsigned blocks = unsigned((rows + warps - 1) / warps);
    if (d == 32)
        attention<32><<<blocks, warps * 32, 0, stream>>>(input, output, n, rows);
    else
        attention<64><<<blocks, warps * 32, 0, stream>>>(input, output, n, rows);
}

inline void must(cudaError_t error, const char* what = "CUDA") {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    std::exit(1);
}

inline Shape read_shape(std::FILE* file) {
    Shape shape;
    if (!file || std::fread(&shape, 4, 3, file) != 3) std::exit(1);
    return shape;
}

inline void read_values(std::FILE* file, float* values, size_t count) {
    if (std::fread(values, 4, count, file) != count) std::exit(1);
    std::fclose(file);
}

inline void write_values(const char* path, const float* values, size_t count) {
    std::FILE* const file = std::fopen(path, "wb");
    if (!file || std::fwrite(values, 4, count, file) != count || std::fclose(file) != 0) std::exit(1);
}

// The plain way from INPUT to OUTPUT.
inline void compute(const char* input_path, const char* output_path, int warps = kWarps) {
    std::FILE* const file = std::fopen(input_path, "rb");
    const Shape shape = read_shape(file);
    std::vector<float> values(3 * shape.count());
    read_values(file, values.data(), values.size());
    float *input, *output;
    must(cudaMalloc(&input, 3 * shape.count() * 4));
    must(cudaMalloc(&output, shape.count() * 4));
    must(cudaMemcpy(input, values.data(), 3 * shape.count() * 4, cudaMemcpyHostToDevice));
    launch(input, output, shape.batches, shape.n, shape.d, 0, warps);
    must(cudaGetLastError());
    must(cudaMemcpy(values.data(), output, shape.count() * 4, cudaMemcpyDeviceToHost));
    write_values(output_path, values.data(), shape.count());
}
