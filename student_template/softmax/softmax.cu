// Warm-up 2: the softmax of every row of a matrix.
//
//     ./softmax INPUT OUTPUT
//
// This file reads INPUT, sends X to the GPU, calls your kernel, and writes OUTPUT. The kernel is yours: look for TODO.
// As it stands, the program compiles, runs, and writes zeros, which fails every test.
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

// y = softmax of every row of x; both rows × columns, row-major.
__global__ void softmax(const float* x, float* y, int rows, int columns) {
    // TODO: your kernel. Begin with a correct version, even if it is slow: one thread for each row that goes
    // through it three times: for the maximum, for the sum, for the results.
}

static void launch_softmax(const float* x, float* y, int rows, int columns) {
    // TODO: blocks and threads that fit your kernel.
    softmax<<<1, 128>>>(x, y, rows, columns);
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
    CUDA_CHECK(cudaMemset(y, 0, bytes));
    launch_softmax(x, y, rows, columns);
    CUDA_CHECK(cudaMemcpy(values.data(), y, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(x));
    CUDA_CHECK(cudaFree(y));
    write_file(argv[2], values);
    return 0;
}
