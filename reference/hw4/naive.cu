// Attention forward, version 1 of 3: the formula, one kernel per step.
//
// Theory of operation
//
//   O = softmax(Q Kᵀ / sqrt(d)) V is three steps, and each is a kernel whose result lies in global memory:
//
//       scores    S[row][key] = (Q[row] . K[key]) / sqrt(d)                   one thread per score
//       softmax   P[row][key] = exp(S[row][key] - max) / sum, in place        one block per row
//       output    O[row][x] = sum over keys of P[row][key] * V[key][x]        one thread per element of O
//
//   Nothing here is clever, which makes it the version to compare the others with. It is slow for one reason: every
//   score is written once and read three times, and there are N of them for each row but only d values of Q. The
//   two cleverer versions never store a score.
//
//   Memory. All scores of one batch are N² floats, 4 GiB for N = 32768. The rows of all batches are therefore
//   numbered through (row g belongs to batch g / N) and taken in runs that fit a score buffer of 256 MiB. The
//   input may be larger than the device, so batches are read in groups of at most 256 MiB as well.
//
//   Grids are one-dimensional: gridDim.y and gridDim.z end at 65535, and B * N goes far beyond. Every index
//   that can pass 2^31 is a size_t.
//
// Build: nvcc -O3 -std=c++17 naive.cu -o hw4

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

// --------------------------------------------------------------------------------------------- kernels

constexpr int kThreads = 256;

// The input of a group of batches: Q, K, V of its first batch, then of its second, ... `row` counts through the group.
__device__ const float* matrix_of(const float* input, size_t row, int which, int n, int d) {
    return input + (row / n * 3 + which) * size_t(n) * d;
}

// scores[i][key] for the rows first_row + i of the group. Grid: rows * n / kThreads blocks.
__global__ void scores_kernel(const float* input, float* scores, size_t first_row, int n, int d, float scale) {
    const size_t index = size_t(blockIdx.x) * kThreads + threadIdx.x;
    const size_t row = first_row + index / n;
    const int key = int(index % n);
    const float* const q = matrix_of(input, row, 0, n, d) + row % n * d;
    const float* const k = matrix_of(input, row, 1, n, d) + size_t(key) * d;
    float sum = 0.0f;
    for (int x = 0; x < d; ++x) sum += q[x] * k[x];
    scores[index] = sum * scale;
}

// The reduction of one value per thread, by `combine`, to one value that every thread of the block gets.
template <typename Combine>
__device__ float block_reduce(float value, Combine combine) {
    __shared__ float partial[kThreads];
    partial[threadIdx.x] = value;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] = combine(partial[threadIdx.x], partial[threadIdx.x + half]);
        __syncthreads();
    }
    const float result = partial[0];
    __syncthreads();    // the next reduction overwrites partial[0]
    return result;
}

struct Max {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};

// Softmax of every row in place. The row's maximum is subtracted first: exp of a score of 89 is infinite in float.
__global__ void softmax_kernel(float* scores, int n) {
    float* const row = scores + size_t(blockIdx.x) * n;
    float most = -INFINITY;
    for (int key = threadIdx.x; key < n; key += kThreads) most = fmaxf(most, row[key]);
    most = block_reduce(most, Max());

    float sum = 0.0f;
    for (int key = threadIdx.x; key < n; key += kThreads) {
        row[key] = expf(row[key] - most);
        sum += row[key];
    }
    sum = block_reduce(sum, Sum());
    for (int key = threadIdx.x; key < n; key += kThreads) row[key] /= sum;
}

// output[row][x] for the rows first_row + i of the group. Grid: rows * d / kThreads blocks.
__global__ void output_kernel(const float* input, const float* scores, float* output, size_t first_row, int n, int d) {
    const size_t index = size_t(blockIdx.x) * kThreads + threadIdx.x;
    const size_t row = first_row + index / d;
    const int x = int(index % d);
    const float* const p = scores + index / d * n;
    const float* const v = matrix_of(input, row, 2, n, d) + x;
    float sum = 0.0f;
    for (int key = 0; key < n; ++key) sum += p[key] * v[size_t(key) * d];
    output[row * d + x] = sum;
}

// ------------------------------------------------------------------------------------------------ host

#define CUDA_CHECK(call)                                                                                       \
    do {                                                                                                       \
        const cudaError_t error_ = (call);                                                                     \
        if (error_ != cudaSuccess) {                                                                           \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));    \
            std::exit(1);                                                                                      \
        }                                                                                                      \
    } while (0)

struct Shape {
    int32_t batches, rows, dim;
    size_t matrix() const { return size_t(rows) * dim; }    // floats in one of Q, K, V, O of a batch
};

[[noreturn]] static void fail(const char* path, const char* what) {
    std::fprintf(stderr, "hw4: %s: %s\n", path, what);
    std::exit(1);
}

// Opens INPUT and checks that its header is legal and that its size is what the header says.
static FILE* open_input(const char* path, Shape& shape) {
    FILE* const file = std::fopen(path, "rb");
    if (!file) fail(path, "cannot be opened for reading");
    if (std::fread(&shape, sizeof shape, 1, file) != 1) fail(path, "too short for the header B N d (12 bytes)");
    if (shape.batches < 1 || shape.rows < 128 || shape.rows > 32768 || shape.rows % 128 != 0 ||
        (shape.dim != 32 && shape.dim != 64)) {
        std::fprintf(stderr, "hw4: %s: B=%d N=%d d=%d; expected B >= 1, N a multiple of 128 up to 32768, d 32 or 64\n",
                     path, shape.batches, shape.rows, shape.dim);
        std::exit(1);
    }
    const long long expected = 12 + 12LL * shape.batches * (long long)shape.matrix();
    if (std::fseek(file, 0, SEEK_END) != 0) fail(path, "is not a regular file");
    const long long found = std::ftell(file);
    if (found != expected) {
        std::fprintf(stderr, "hw4: %s: %lld bytes; B=%d N=%d d=%d needs %lld\n", path, found, shape.batches, shape.rows,
                     shape.dim, expected);
        std::exit(1);
    }
    std::fseek(file, 12, SEEK_SET);
    return file;
}

// `score_rows` is a multiple of 8, so that rows * n and rows * d are multiples of kThreads.
static void attention(const float* input, float* output, float* scores, size_t score_rows, int batches, int n, int d) {
    const float scale = float(1.0 / std::sqrt(double(d)));
    const size_t all_rows = size_t(batches) * n;
    for (size_t first = 0; first < all_rows; first += score_rows) {
        const size_t rows = std::min(score_rows, all_rows - first);
        scores_kernel<<<unsigned(rows * n / kThreads), kThreads>>>(input, scores, first, n, d, scale);
        softmax_kernel<<<unsigned(rows), kThreads>>>(scores, n);
        output_kernel<<<unsigned(rows * d / kThreads), kThreads>>>(input, scores, output, first, n, d);
        CUDA_CHECK(cudaGetLastError());
    }
}

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s INPUT OUTPUT\n", argv[0]);
        return 2;
    }
    Shape shape;
    FILE* const in = open_input(argv[1], shape);
    FILE* const out = std::fopen(argv[2], "wb");
    if (!out) fail(argv[2], "cannot be opened for writing");

    constexpr size_t kBuffer = size_t(256) << 20;    // bytes, for the scores and for the input of a group
    const size_t matrix = shape.matrix();
    const size_t all_rows = size_t(shape.batches) * shape.rows;
    const size_t score_rows = std::min(all_rows, kBuffer / (shape.rows * sizeof(float)) / 8 * 8);
    const int group = int(std::min(size_t(shape.batches), std::max(size_t(1), kBuffer / (3 * matrix * sizeof(float)))));

    float *input, *output, *scores;
    CUDA_CHECK(cudaMalloc(&input, group * 3 * matrix * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&output, group * matrix * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&scores, score_rows * shape.rows * sizeof(float)));
    float* const host = static_cast<float*>(std::malloc(group * 3 * matrix * sizeof(float)));
    if (!host) fail(argv[1], "not enough host memory for a group of batches");

    for (int first = 0; first < shape.batches; first += group) {
        const int batches = std::min(group, shape.batches - first);
        const size_t count = batches * matrix;
        if (std::fread(host, sizeof(float), 3 * count, in) != 3 * count) fail(argv[1], "ended early while being read");
        CUDA_CHECK(cudaMemcpy(input, host, 3 * count * sizeof(float), cudaMemcpyHostToDevice));
        attention(input, output, scores, score_rows, batches, shape.rows, shape.dim);
        CUDA_CHECK(cudaMemcpy(host, output, count * sizeof(float), cudaMemcpyDeviceToHost));
        if (std::fwrite(host, sizeof(float), count, out) != count) fail(argv[2], "cannot be written (disk full?)");
    }

    std::free(host);
    CUDA_CHECK(cudaFree(scores));
    CUDA_CHECK(cudaFree(output));
    CUDA_CHECK(cudaFree(input));
    std::fclose(in);
    if (std::fclose(out) != 0) fail(argv[2], "cannot be written (disk full?)");
    return 0;
}
