// What the wrong softmaxes of this folder share: every thread of a warp finds maximum and sum of the whole row, then
// they share out the results. A macro at each place where one goes wrong:
//
//     SUMMED                     how many columns are looked at                   columns
//     FIRST_MAXIMUM              what the running maximum starts from             -INFINITY
//     NEW_MAXIMUM(most, value)   how it grows                                     fmaxf(most, value)
//     RESCALE(old, new)          what the sum is multiplied with when it grows    expf((old) - (new))
//     DIVISOR                    what results are divided by                      sum
//     ROW_STEP, COLUMN_STEP, LENGTH, BLOCKS    where rows and columns lie         columns, 1, columns, rows
#pragma once

#ifndef SUMMED
#define SUMMED LENGTH
#endif
#ifndef FIRST_MAXIMUM
#define FIRST_MAXIMUM -INFINITY
#endif
#ifndef NEW_MAXIMUM
#define NEW_MAXIMUM(most, value) fmaxf(most, value)
#endif
#ifndef RESCALE
#define RESCALE(old, new) expf((old) - (new))
#endif
#ifndef DIVISOR
#define DIVISOR sum
#endif
#ifndef ROW_STEP
#define ROW_STEP columns
#endif
#ifndef COLUMN_STEP
#define COLUMN_STEP 1
#endif
#ifndef LENGTH
#define LENGTH columns
#endif
#ifndef BLOCKS
#define BLOCKS rows
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

// Grid: one block of one warp for each row.
__global__ void softmax(const float* x, float* y, int rows, int columns) {
    x += size_t(blockIdx.x) * ROW_STEP;
    y += size_t(blockIdx.x) * ROW_STEP;
    float most = FIRST_MAXIMUM, sum = 0.0f;
    for (int j = 0; j < SUMMED; ++j) {
        const float value = x[size_t(j) * COLUMN_STEP], top = NEW_MAXIMUM(most, value);
        sum = sum * RESCALE(most, top) + expf(value - top);
        most = top;
    }
    for (int j = threadIdx.x; j < LENGTH; j += 32)
        y[size_t(j) * COLUMN_STEP] = expf(x[size_t(j) * COLUMN_STEP] - most) / DIVISOR;
}

static void launch_softmax(const float* x, float* y, int rows, int columns) {
    softmax<<<BLOCKS, 32>>>(x, y, rows, columns);
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
