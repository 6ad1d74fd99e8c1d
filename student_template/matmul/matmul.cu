// Warm-up 1: the product of two matrices on a GPU.
//
//     ./matmul INPUT OUTPUT
//
// This file reads INPUT, sends A and B to the GPU, calls your kernel, and writes OUTPUT. The kernel is yours: look for
// TODO. As it stands, the program compiles, runs, and writes zeros, which fails every test.
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

// c = a b. a is m × k, b is k × n, c is m × n, all row-major: element (row, column) of b is b[row * n + column].
__global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
    // TODO: your kernel. Begin with a correct version, even if it is slow: one thread for each element of c.
}

static void launch_product(const float* a, const float* b, float* c, int m, int n, int k) {
    // TODO: blocks and threads that fit your kernel. m and n need not be multiples of anything: round up.
    const dim3 threads(16, 16), blocks(1, 1);
    product<<<blocks, threads>>>(a, b, c, m, n, k);
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
    CUDA_CHECK(cudaMemset(device_c, 0, c.size() * sizeof(float)));
    launch_product(device_a, device_b, device_c, m, n, k);
    CUDA_CHECK(cudaMemcpy(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(device_a));
    CUDA_CHECK(cudaFree(device_b));
    CUDA_CHECK(cudaFree(device_c));
    write_file(argv[2], c);
    return 0;
}
