// Softmax of rows, version 3 of 3: short rows by a warp from registers, long ones by a block, four values a load.
//
// Theory of operation
//
//   The least traffic is one read of X and one write of Y. The online version reads X twice, and gives a row of 33
//   columns to 256 threads. Here
//
//     rows of up to 1024 columns are a warp's. A lane keeps the row's columns lane, lane + 32, … in registers (at
//       most 32 of them: this is thread coarsening), so X is read once; maximum and sum are exchanged by shuffles,
//       and no barrier is needed. A block holds 8 warps, 8 rows.
//     longer rows are a block's, as in the online version, but a thread takes 4 neighbouring columns at a time. Only
//       one exponential of four rescales. The second read of X comes from the L2 cache while the row fits there.
//
//   Rows may start at any 4-byte address, so 16-byte loads are used only where the row's length allows them.

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
constexpr int kLanes = 32;
constexpr unsigned kAll = 0xffffffffu;

__device__ float warp_max(float value) {
    for (int lane = 1; lane < kLanes; lane *= 2) value = fmaxf(value, __shfl_xor_sync(kAll, value, lane));
    return value;
}

__device__ float warp_sum(float value) {
    for (int lane = 1; lane < kLanes; lane *= 2) value += __shfl_xor_sync(kAll, value, lane);
    return value;
}

// Rows of at most 32 * Values columns. Grid: ceil(rows * 32 / kThreads) blocks of kThreads threads.
template <int Values>
__global__ void softmax_short(const float* x, float* y, int rows, int columns) {
    const int row = (blockIdx.x * kThreads + threadIdx.x) / kLanes, lane = threadIdx.x % kLanes;
    if (row >= rows) return;    // whole warps
    x += size_t(row) * columns;
    y += size_t(row) * columns;
    float value[Values], most = -INFINITY, sum = 0.0f;
#pragma unroll
    for (int i = 0; i < Values; ++i) {
        const int j = lane + i * kLanes;
        value[i] = j < columns ? x[j] : -INFINITY;    // exp(-inf) is 0: it adds nothing
        most = fmaxf(most, value[i]);
    }
    most = warp_max(most);
#pragma unroll
    for (int i = 0; i < Values; ++i) sum += value[i] = expf(value[i] - most);
    const float scale = 1.0f / warp_sum(sum);
#pragma unroll
    for (int i = 0; i < Values; ++i) {
        const int j = lane + i * kLanes;
        if (j < columns) y[j] = value[i] * scale;
    }
}

// Four columns of a row from `from` on, of which those beyond the end count as -inf.
__device__ float4 load4(const float* from, int left, bool aligned) {
    if (aligned) return *reinterpret_cast<const float4*>(from);
    return {from[0], left > 1 ? from[1] : -INFINITY, left > 2 ? from[2] : -INFINITY, left > 3 ? from[3] : -INFINITY};
}

// Rows of any length. Grid: one block of kThreads threads for each row.
__global__ void softmax_long(const float* x, float* y, int columns) {
    const bool aligned = columns % 4 == 0;
    x += size_t(blockIdx.x) * columns;
    y += size_t(blockIdx.x) * columns;
    float most = -INFINITY, sum = 0.0f;
    for (int j = 4 * threadIdx.x; j < columns; j += 4 * kThreads) {
        const float4 v = load4(x + j, columns - j, aligned);
        const float top = fmaxf(most, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
        sum = sum * expf(most - top) + (expf(v.x - top) + expf(v.y - top) + expf(v.z - top) + expf(v.w - top));
        most = top;
    }
    // Maximum and sum of the warp, then of the block. A warp without columns has -inf and 0, and -inf - -inf is NaN.
    __shared__ float warp_most[kThreads / kLanes], warp_total[kThreads / kLanes];
    const float top = warp_max(most);
    const float part = warp_sum(most == -INFINITY ? 0.0f : sum * expf(most - top));
    if (threadIdx.x % kLanes == 0) warp_most[threadIdx.x / kLanes] = top, warp_total[threadIdx.x / kLanes] = part;
    __syncthreads();
    most = -INFINITY, sum = 0.0f;
    for (int warp = 0; warp < kThreads / kLanes; ++warp) most = fmaxf(most, warp_most[warp]);
    for (int warp = 0; warp < kThreads / kLanes; ++warp) sum += warp_total[warp] * expf(warp_most[warp] - most);

    const float scale = 1.0f / sum;
    for (int j = 4 * threadIdx.x; j < columns; j += 4 * kThreads) {
        const float4 v = load4(x + j, columns - j, aligned);
        const float4 p = {expf(v.x - most) * scale, expf(v.y - most) * scale, expf(v.z - most) * scale,
                          expf(v.w - most) * scale};
        if (aligned) {
            *reinterpret_cast<float4*>(y + j) = p;
            continue;
        }
        y[j] = p.x;
        if (j + 1 < columns) y[j + 1] = p.y;
        if (j + 2 < columns) y[j + 2] = p.z;
        if (j + 3 < columns) y[j + 3] = p.w;
    }
}

static void launch_softmax(const float* x, float* y, int rows, int columns) {
    const int blocks = int((size_t(rows) * kLanes + kThreads - 1) / kThreads);
    if (columns <= 32)
        softmax_short<1><<<blocks, kThreads>>>(x, y, rows, columns);
    else if (columns <= 128)
        softmax_short<4><<<blocks, kThreads>>>(x, y, rows, columns);
    else if (columns <= 1024)
        softmax_short<32><<<blocks, kThreads>>>(x, y, rows, columns);
    else
        softmax_long<<<rows, kThreads>>>(x, y, columns);
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
