// Matrix product, version 2 of 3: tiles of A and B in shared memory.
//
// Theory of operation
//
//   A block computes a 32 × 32 tile of C. Step by step it loads a 32 × 32 tile of A and one of B into shared memory,
//   one element of each per thread, and every thread uses 32 of both. Global memory sees each element of A N / 32
//   times instead of N times. What remains is two loads from shared memory for each multiply-add.
//
//   Bank conflicts: the lanes of a warp have the same y and x = 0..31, so a_tile[y][i] is one address for all (a
//   broadcast) and b_tile[i][x] is 32 neighbouring words.

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

constexpr int kTile = 32;

// Grid: ceil(n / kTile) × ceil(m / kTile) blocks of kTile × kTile threads: the most a block may have, so the compiler must
// be told to leave registers for all of them.
__global__ void __launch_bounds__(kTile * kTile) product(const float* a, const float* b, float* c, int m, int n,
                                                         int k) {
    __shared__ float a_tile[kTile][kTile], b_tile[kTile][kTile];
    const int x = threadIdx.x, y = threadIdx.y;
    const int column = blockIdx.x * kTile + x, row = blockIdx.y * kTile + y;
    float sum = 0.0f;
    for (int first = 0; first < k; first += kTile) {
        // Beyond the edges of A and B there are zeros, which add nothing. No thread leaves early: it loads for others.
        a_tile[y][x] = row < m && first + x < k ? a[size_t(row) * k + first + x] : 0.0f;
        b_tile[y][x] = first + y < k && column < n ? b[size_t(first + y) * n + column] : 0.0f;
        __syncthreads();    // the tiles are complete
        for (int i = 0; i < kTile; ++i) sum += a_tile[y][i] * b_tile[i][x];
        __syncthreads();    // nobody still reads them
    }
    if (row < m && column < n) c[size_t(row) * n + column] = sum;
}

static void launch_product(const float* a, const float* b, float* c, int m, int n, int k) {
    const dim3 threads(kTile, kTile), blocks((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
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
