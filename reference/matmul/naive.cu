// Matrix product, version 1 of 3: one thread for each element of C.
//
// Theory of operation
//
//   Thread (column, row) walks along row `row` of A and down column `column` of B. Neighbouring threads have
//   neighbouring columns: their loads of B lie side by side (one 128-byte line for a warp), their loads of A are one
//   address. Every element of A is loaded N times and every one of B M times, from the caches at best: two loads for
//   each multiply-add, which is what the next version is about.

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

// Grid: at least (n, m) threads in x and y.
__global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || column >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum += a[size_t(row) * k + i] * b[size_t(i) * n + column];
    c[size_t(row) * n + column] = sum;
}

static void launch_product(const float* a, const float* b, float* c, int m, int n, int k) {
    const dim3 threads(32, 8), blocks((n + 31) / 32, (m + 7) / 8);
    product<<<blocks, threads>>>(a, b, c, m, n, k);
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
    int32_t m, n, k;
    read_exactly(in, &m, sizeof m, argv[1]);
    read_exactly(in, &n, sizeof n, argv[1]);
    read_exactly(in, &k, sizeof k, argv[1]);
    if (m < 1 || n < 1 || k < 1) fail(argv[1], "the header's M, N and K must be at least 1");
    std::vector<float> a(size_t(m) * k), b(size_t(k) * n), c(size_t(m) * n);
    read_exactly(in, a.data(), a.size() * sizeof(float), argv[1]);
    read_exactly(in, b.data(), b.size() * sizeof(float), argv[1]);
    std::fclose(in);

    float *device_a, *device_b, *device_c;
    CUDA_CHECK(cudaMalloc(&device_a, a.size() * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&device_b, b.size() * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&device_c, c.size() * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(device_a, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(device_b, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));
    launch_product(device_a, device_b, device_c, m, n, k);
    CUDA_CHECK(cudaMemcpy(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(device_a));
    CUDA_CHECK(cudaFree(device_b));
    CUDA_CHECK(cudaFree(device_c));
    write_file(argv[2], c);
    return 0;
}
