// Softmax of rows, version 1 of 3: one thread for each row.
//
// Theory of operation
//
//   A thread walks along its row three times: for the maximum, for the sum, for the results. It is right for rows of
//   any length, and slow for two reasons. Neighbouring threads read addresses a whole row apart, so that a warp's
//   load touches 32 lines of which it uses 4 bytes each. And 100 rows are 100 threads, on a GPU that wants 100,000.

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

// Grid: at least `rows` threads.
__global__ void softmax(const float* x, float* y, int rows, int columns) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    x += size_t(row) * columns;
    y += size_t(row) * columns;
    float most = -INFINITY, sum = 0.0f;
    for (int j = 0; j < columns; ++j) most = fmaxf(most, x[j]);
    for (int j = 0; j < columns; ++j) sum += expf(x[j] - most);
    for (int j = 0; j < columns; ++j) y[j] = expf(x[j] - most) / sum;
}

static void launch_softmax(const float* x, float* y, int rows, int columns) {
    softmax<<<(rows + 127) / 128, 128>>>(x, y, rows, columns);
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
