// Matrix product, version 3 of 3: every thread computes a patch of C in registers.
//
// Theory of operation
//
//   The tiled version loads two floats from shared memory for each multiply-add, and shared memory delivers 32 floats
//   a clock to an SM that could do 128 multiply-adds. So a thread keeps an 8 × 8 patch of sums: for each step in k it
//   loads 8 floats of A and 8 of B, four 16-byte loads, and does 64 multiply-adds with them.
//
//   A block of 256 threads computes 128 × 128 elements. Its tile of A, 128 rows × 8 deep, lies transposed, [k][row],
//   so that a thread's rows are adjacent. A thread's columns are 4 at 4 * tx and 4 at 64 + 4 * tx: the lanes of a warp
//   then read adjacent 16-byte pieces, with no bank conflict; rows likewise.
//
//   The next tiles wait in registers while the present ones are used, so that the loads from global memory have the
//   time of 512 multiply-adds to arrive. There are two copies of the tiles in shared memory, and one barrier a step.

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

constexpr int kSide = 128;     // rows and columns of C of a block
constexpr int kDepth = 8;      // of k, a step
constexpr int kThreads = 256;
constexpr int kPatch = 8;
constexpr int kLoads = kSide * kDepth / kThreads;    // floats of A, and of B, that a thread loads for a step

__device__ __forceinline__ void load4(float* to, const float* from) {
    const float4 x = *reinterpret_cast<const float4*>(from);
    to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
}

// Grid: ceil(n / kSide) × ceil(m / kSide) blocks.
__global__ void __launch_bounds__(kThreads) product(const float* __restrict__ a, const float* __restrict__ b,
                                                    float* __restrict__ c, int m, int n, int k) {
    __shared__ __align__(16) float a_tile[2][kDepth][kSide];
    __shared__ __align__(16) float b_tile[2][kDepth][kSide];
    const int first_row = blockIdx.y * kSide, first_column = blockIdx.x * kSide;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;

    // Of A a thread loads 4 neighbouring k of one row; of B 4 values 32 columns apart, so that a warp reads a line.
    const int a_row = threadIdx.x / 2, a_depth = threadIdx.x % 2 * kLoads;
    const int b_depth = threadIdx.x / 32, b_column = threadIdx.x % 32;
    float next_a[kLoads], next_b[kLoads];
    const auto fetch = [&](int first) {
#pragma unroll
        for (int i = 0; i < kLoads; ++i) {
            const int row = first_row + a_row, depth = first + a_depth + i;
            next_a[i] = row < m && depth < k ? a[size_t(row) * k + depth] : 0.0f;
            const int column = first_column + b_column + 32 * i;
            next_b[i] = first + b_depth < k && column < n ? b[size_t(first + b_depth) * n + column] : 0.0f;
        }
    };
    const auto keep = [&](int turn) {
#pragma unroll
        for (int i = 0; i < kLoads; ++i) {
            a_tile[turn][a_depth + i][a_row] = next_a[i];
            b_tile[turn][b_depth][b_column + 32 * i] = next_b[i];
        }
    };

    float sum[kPatch][kPatch] = {};
    fetch(0);
    keep(0);
    __syncthreads();
    int turn = 0;
    for (int first = 0; first < k; first += kDepth, turn ^= 1) {
        const bool more = first + kDepth < k;
        if (more) fetch(first + kDepth);
#pragma unroll
        for (int i = 0; i < kDepth; ++i) {
            float x[kPatch], y[kPatch];
            load4(y, &a_tile[turn][i][4 * ty]);
            load4(y + 4, &a_tile[turn][i][64 + 4 * ty]);
            load4(x, &b_tile[turn][i][4 * tx]);
            load4(x + 4, &b_tile[turn][i][64 + 4 * tx]);
#pragma unroll
            for (int r = 0; r < kPatch; ++r)
#pragma unroll
                for (int s = 0; s < kPatch; ++s) sum[r][s] += y[r] * x[s];
        }
        if (more) keep(turn ^ 1);    // the other copy was last read before the barrier below, a step ago
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < kPatch; ++r) {
        const int row = first_row + r / 4 * 64 + 4 * ty + r % 4;
#pragma unroll
        for (int s = 0; s < kPatch; ++s) {
            const int column = first_column + s / 4 * 64 + 4 * tx + s % 4;
            if (row < m && column < n) c[size_t(row) * n + column] = sum[r][s];
        }
    }
}

static void launch_product(const float* a, const float* b, float* c, int m, int n, int k) {
    const dim3 blocks((n + kSide - 1) / kSide, (m + kSide - 1) / kSide);
    product<<<blocks, kThreads>>>(a, b, c, m, n, k);
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
