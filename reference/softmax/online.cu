// Softmax of rows, version 2 of 3: one block for each row, maximum and sum in one pass.
//
// Theory of operation
//
//   The threads of a block take the columns in turn: neighbouring threads, neighbouring addresses. Each keeps the
//   largest of its values so far and the sum of their exponentials relative to it; when a larger one comes, the sum
//   is multiplied by exp(old - new) (Milakov and Gimelshein, 2018). The 256 parts are merged in shared memory by the
//   same rule, two and two. Then a second pass writes the results: X is read twice, Y written once.

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

constexpr int kThreads = 256;

// Maximum and sum of some of a row's values: the sum is of exp(x - most).
struct Part {
    float most, sum;
};

// The parts of two disjoint sets of values → the part of both. Of an empty set: most -inf, sum 0.
__device__ Part merge(Part a, Part b) {
    const float most = fmaxf(a.most, b.most);
    if (most == -INFINITY) return {most, 0.0f};    // both empty: -inf - -inf would be NaN
    return {most, a.sum * expf(a.most - most) + b.sum * expf(b.most - most)};
}

// Grid: one block of kThreads threads for each row.
__global__ void softmax(const float* x, float* y, int columns) {
    x += size_t(blockIdx.x) * columns;
    y += size_t(blockIdx.x) * columns;
    Part mine = {-INFINITY, 0.0f};
    for (int j = threadIdx.x; j < columns; j += kThreads) {
        const float most = fmaxf(mine.most, x[j]);
        mine.sum = mine.sum * expf(mine.most - most) + expf(x[j] - most);
        mine.most = most;
    }
    __shared__ Part parts[kThreads];
    parts[threadIdx.x] = mine;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) parts[threadIdx.x] = merge(parts[threadIdx.x], parts[threadIdx.x + half]);
        __syncthreads();
    }
    const Part whole = parts[0];
    for (int j = threadIdx.x; j < columns; j += kThreads) y[j] = expf(x[j] - whole.most) / whole.sum;
}

static void launch_softmax(const float* x, float* y, int rows, int columns) {
    softmax<<<rows, kThreads>>>(x, y, columns);
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
    int32_t rows, columns;
    read_exactly(in, &rows, sizeof rows, argv[1]);
    read_exactly(in, &columns, sizeof columns, argv[1]);
    if (rows < 1 || columns < 1) fail(argv[1], "the header's rows and columns must be at least 1");
    std::vector<float> values(size_t(rows) * columns);
    const size_t bytes = values.size() * sizeof(float);
    read_exactly(in, values.data(), bytes, argv[1]);
    std::fclose(in);

    float *x, *y;
    CUDA_CHECK(cudaMalloc(&x, bytes));
    CUDA_CHECK(cudaMalloc(&y, bytes));
    CUDA_CHECK(cudaMemcpy(x, values.data(), bytes, cudaMemcpyHostToDevice));
    launch_softmax(x, y, rows, columns);
    CUDA_CHECK(cudaMemcpy(values.data(), y, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(x));
    CUDA_CHECK(cudaFree(y));
    write_file(argv[2], values);
    return 0;
}
