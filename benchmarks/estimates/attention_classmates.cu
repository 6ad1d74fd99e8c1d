// Attention forward as more students write it, for measuring how far predicted times are off. STYLE chooses the kernel;
// TILE, THREADS, PAD, ROWS, STREAMS, FIXED, BARRIER, EXTRA say how well it is made. attention_styles.cu has the first nine.
//
// Theory of operation
//
//   10  a block of TILE threads per batch walks all tiles; O, l and m in global memory; d at run time (flash-attention-minimal)
//   11  as 10, a block per tile of queries
//   12  32 x 32 threads, a score each; all threads of a row repeat its softmax; o in shared memory; d at run time
//   13  a warp per query, a lane per key, K and V tiles in shared memory; softmax by shuffles
//   14  a thread per query, q and o in arrays with d at run time: local memory
//   15  a thread for ROWS queries; tiles of K and V as float4; everything else in registers
//   16  as 13, a launch for each batch on STREAMS streams
//   17  a launch for each tile of keys; O, l and m in global memory between them
//   18  five launches for each tile of keys: product, maximum, exponential, sum, update
//   19  256 threads, 8 x 4 scores each of a 128 x 64 tile, K transposed, float4 from shared memory
//   20  WMMA with TF32: 16 queries a warp, scores through shared memory
//   21  ROWS threads for a query, each with a part of the columns
//   22  two passes over the keys: maximum and sum, then the output
//   23  as 15, sums in double
//   24  a thread per query, keys from global memory four at a time, exp2f
//   25  a thread per query, K and V tiles copied asynchronously into two buffers
//   26  a thread per query, q in shared memory without padding
//   27  keys split over ROWS blocks, partial results combined by a second kernel
//   28  a block of 32 queries; scores of all keys of a query in shared memory tile by tile; one warp does the softmax
//   29  half values in shared memory, products in half2
//
// Build: nvcc -O3 -std=c++17 -DSTYLE=10 attention_classmates.cu -o hw4

#include <cfloat>
#include <cmath>

#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include "attention_main.cuh"

#ifndef STYLE
#define STYLE 10
#endif
#ifndef TILE
#define TILE 32
#endif
#ifndef THREADS
#define THREADS 128
#endif
#ifndef PAD
#define PAD 0
#endif
#ifndef ROWS
#define ROWS 1
#endif
#ifndef EXTRA    // bytes of shared memory that nobody uses: fewer blocks on an SM
#define EXTRA 0
#endif
#ifndef STREAMS
#define STREAMS 1
#endif

// A buffer that stays for the program's life, so that a call after the first one allocates nothing.
template <int NUMBER>
float* scratch(size_t floats) {
    static float* at = nullptr;
    static size_t held = 0;
    if (held < floats) {
        cudaFree(at);
        CHECK(cudaMalloc(&at, floats * sizeof(float)));
        held = floats;
    }
    return at;
}

template <typename Kernel>
void allow_shared(Kernel kernel, int bytes) {
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

__global__ void fill(float* at, size_t count, float value) {
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) at[i] = value;
}

#if STYLE == 10 || STYLE == 11
__global__ void forward(const float* input, float* output, float* l, float* m, int n, int d, float scale) {
    extern __shared__ float shared[];
    const int t = threadIdx.x, stride = d + PAD;
    float *const q_tile = shared, *const k_tile = q_tile + TILE * stride, *const v_tile = k_tile + TILE * stride, *const s = v_tile + TILE * stride;
    const int b = STYLE == 10 ? blockIdx.x : blockIdx.y;
    const float *const q = input + size_t(b) * 3 * n * d, *const k = q + size_t(n) * d, *const v = k + size_t(n) * d;
    float* const o = output + size_t(b) * n * d;
    l += size_t(b) * n, m += size_t(b) * n;
    const int first_i = STYLE == 10 ? 0 : blockIdx.x, last_i = STYLE == 10 ? n / TILE : blockIdx.x + 1;
    for (int j = 0; j < n / TILE; ++j) {
        for (int x = 0; x < d; ++x) {
            k_tile[t * stride + x] = k[size_t(j * TILE + t) * d + x];
            v_tile[t * stride + x] = v[size_t(j * TILE + t) * d + x];
        }
        __syncthreads();
        for (int i = first_i; i < last_i; ++i) {
            const int row = i * TILE + t;
            for (int x = 0; x < d; ++x) q_tile[t * stride + x] = q[size_t(row) * d + x];
            const float before_m = m[row], before_l = l[row];
            float top = -FLT_MAX, sum = 0.0f;
            for (int y = 0; y < TILE; ++y) {
                float product = 0.0f;
                for (int x = 0; x < d; ++x) product += q_tile[t * stride + x] * k_tile[y * stride + x];
                product *= scale;
                s[TILE * t + y] = product;
                if (product > top) top = product;
            }
            for (int y = 0; y < TILE; ++y) {
                s[TILE * t + y] = __expf(s[TILE * t + y] - top);
                sum += s[TILE * t + y];
            }
            const float new_m = fmaxf(before_m, top), new_l = __expf(before_m - new_m) * before_l + __expf(top - new_m) * sum;
            for (int x = 0; x < d; ++x) {
                float pv = 0.0f;
                for (int y = 0; y < TILE; ++y) pv += s[TILE * t + y] * v_tile[y * stride + x];
                o[size_t(row) * d + x] =
                    (1 / new_l) * (before_l * __expf(before_m - new_m) * o[size_t(row) * d + x] + __expf(top - new_m) * pv);
            }
            m[row] = new_m, l[row] = new_l;
        }
        __syncthreads();
    }
}
void run(const float* input, float* output, int batches, int n, int d, float scale) {
    float *const l = scratch<0>(size_t(batches) * n), *const m = scratch<1>(size_t(batches) * n);
    fill<<<256, 256>>>(l, size_t(batches) * n, 0.0f);
    fill<<<256, 256>>>(m, size_t(batches) * n, -FLT_MAX);
    fill<<<1024, 256>>>(output, size_t(batches) * n * d, 0.0f);
    const int bytes = (3 * TILE * (d + PAD) + TILE * TILE) * int(sizeof(float));
    allow_shared(forward, bytes);
    forward<<<STYLE == 10 ? dim3(batches) : dim3(n / TILE, batches), TILE, bytes>>>(input, output, l, m, n, d, scale);
}
#elif STYLE == 12
__global__ void forward(const float* input, float* output, int n, int d, float scale) {
    extern __shared__ float shared[];
    const int x = threadIdx.x, y = threadIdx.y, stride = d + PAD;
    float *const q_tile = shared, *const k_tile = q_tile + 32 * stride, *const v_tile = k_tile + 32 * stride, *const o_tile = v_tile + 32 * stride;
    float *const s = o_tile + 32 * stride, *const m = s + 32 * 32, *const l = m + 32;
    const float *const q = input + size_t(blockIdx.y) * 3 * n * d, *const k = q + size_t(n) * d, *const v = k + size_t(n) * d;
    const int row = blockIdx.x * 32 + y;
    for (int c = x; c < d; c += 32) q_tile[y * stride + c] = q[size_t(row) * d + c], o_tile[y * stride + c] = 0.0f;
    if (x == 0) m[y] = -FLT_MAX, l[y] = 0.0f;
    for (int first = 0; first < n; first += 32) {
        for (int c = x; c < d; c += 32) {
            k_tile[y * stride + c] = k[size_t(first + y) * d + c];
            v_tile[y * stride + c] = v[size_t(first + y) * d + c];
        }
        __syncthreads();
        float sum = 0.0f;
        for (int c = 0; c < d; c++) sum += q_tile[y * stride + c] * k_tile[x * stride + c];
        s[y * 32 + x] = sum * scale;
        __syncthreads();
        float top = s[y * 32], total = 0.0f;
        for (int j = 1; j < 32; j++) top = fmaxf(top, s[y * 32 + j]);
        for (int j = 0; j < 32; j++) total += expf(s[y * 32 + j] - top);
        const float old_m = m[y], old_l = l[y], new_m = fmaxf(old_m, top);
        const float new_l = expf(old_m - new_m) * old_l + expf(top - new_m) * total;
        __syncthreads();
        s[y * 32 + x] = expf(s[y * 32 + x] - top);
        __syncthreads();
        for (int c = x; c < d; c += 32) {
            float pv = 0.0f;
            for (int j = 0; j < 32; j++) pv += s[y * 32 + j] * v_tile[j * stride + c];
            o_tile[y * stride + c] = (old_l * expf(old_m - new_m) * o_tile[y * stride + c] + expf(top - new_m) * pv) / new_l;
        }
        if (x == 0) m[y] = new_m, l[y] = new_l;
        __syncthreads();
    }
    for (int c = x; c < d; c += 32) output[(size_t(blockIdx.y) * n + row) * d + c] = o_tile[y * stride + c];
}
void run(const float* input, float* output, int batches, int n, int d, float scale) {
    const int bytes = (4 * 32 * (d + PAD) + 32 * 32 + 64) * int(sizeof(float));
    allow_shared(forward, bytes);
    forward<<<dim3(n / 32, batches), dim3(32, 32), bytes>>>(input, output, n, d, scale);
}
#elif STYLE == 13 || STYLE == 16
template <int D>
__global__ void forward(const float* input, float* output, int n, float scale) {
    __shared__ float q_tile[THREADS / 32][D], k_tile[32][D + PAD], v_tile[32][D + PAD];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = blockIdx.x * (THREADS / 32) + warp;
    const float *const q = input + size_t(blockIdx.y) * 3 * n * D, *const k = q + size_t(n) * D, *const v = k + size_t(n) * D;
    float o[D / 32] = {}, m = -INFINITY, l = 0.0f;
    for (int c = lane; c < D; c += 32) q_tile[warp][c] = q[size_t(row) * D + c] * scale;
    for (int first = 0; first < n; first += 32) {
        __syncthreads();
        for (int i = threadIdx.x; i < 32 * D; i += THREADS) {
            k_tile[i / D][i % D] = k[size_t(first) * D + i];
            v_tile[i / D][i % D] = v[size_t(first) * D + i];
        }
        __syncthreads();
        float s = 0.0f;
        for (int c = 0; c < D; ++c) s += q_tile[warp][c] * k_tile[lane][c];
        float top = s;
        for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
        top = fmaxf(top, m);
        const float p = __expf(s - top), fade = __expf(m - top);
        float sum = p;
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        l = l * fade + sum, m = top;
        for (int c = 0; c < D / 32; ++c) o[c] *= fade;
        for (int j = 0; j < 32; ++j) {
            const float pj = __shfl_sync(~0u, p, j);
            for (int c = 0; c < D / 32; ++c) o[c] += pj * v_tile[j][32 * c + lane];
        }
    }
    for (int c = 0; c < D / 32; ++c) output[(size_t(blockIdx.y) * n + row) * D + 32 * c + lane] = o[c] / l;
}
void run(const float* input, float* output, int batches, int n, int d, float scale) {
    const auto kernel = d == 32 ? forward<32> : forward<64>;
#if STYLE == 13
    kernel<<<dim3(n / (THREADS / 32), batches), THREADS>>>(input, output, n, scale);
#else
    static cudaStream_t streams[STREAMS];
    for (auto& stream : streams)
        if (!stream) CHECK(cudaStreamCreate(&stream));
    for (int b = 0; b < batches; ++b)
        kernel<<<n / (THREADS / 32), THREADS, 0, streams[b % STREAMS]>>>(input + size_t(b) * 3 * n * d, output + size_t(b) * n * d, n, scale);
#endif
}
#elif STYLE == 14
template <int D>    // 0: known at run time only
__global__ void forward(const float* input, float* output, int n, int columns, float scale) {
    const int d = D ? D : columns;
    extern __shared__ float shared[];
    float *const k_tile = shared, *const v_tile = shared + TILE * d;
    const int row = blockIdx.x * THREADS + threadIdx.x;
    const float *const q = input + size_t(blockIdx.y) * 3 * n * d, *const k = q + size_t(n) * d, *const v = k + size_t(n) * d;
    float mine[64], o[64], m = -FLT_MAX, l = 0.0f;
    for (int x = 0; x < d; ++x) mine[x] = q[size_t(row) * d + x], o[x] = 0.0f;
    for (int first = 0; first < n; first += TILE) {
        __syncthreads();
        for (int i = threadIdx.x; i < TILE * d; i += THREADS) k_tile[i] = k[size_t(first) * d + i], v_tile[i] = v[size_t(first) * d + i];
        __syncthreads();
        for (int key = 0; key < TILE; ++key) {
            float s = 0.0f;
            for (int x = 0; x < d; ++x) s += mine[x] * k_tile[key * d + x];
            s *= scale;
            const float top = fmaxf(m, s), fade = expf(m - top), p = expf(s - top);
            l = l * fade + p;
            for (int x = 0; x < d; ++x) o[x] = o[x] * fade + p * v_tile[key * d + x];
            m = top;
        }
    }
    for (int x = 0; x < d; ++x) output[(size_t(blockIdx.y) * n + row) * d + x] = o[x] / l;
}
void run(const float* input, float* output, int batches, int n, int d, float scale) {
#ifdef FIXED
    const auto kernel = d == 32 ? forward<32> : forward<64>;
#else
    const auto kernel = forward<0>;
#endif
    kernel<<<dim3(n / THREADS, batches), THREADS, 2 * TILE * d * int(sizeof(float))>>>(input, output, n, d, scale);
}
#elif STYLE == 15 || STYLE == 23
#if STYLE == 23
using Sum = double;
#else
using Sum = float;
#endif
template <int D>
__global__ void forward(const float* __restrict__ input, float* __restrict__ output, int n, float scale) {
    __shared__ float4 k_tile[TILE][D / 4], v_tile[TILE][D / 4];
    const float* const q = input + size_t(blockIdx.y) * 3 * n * D;
    const float4 *const k = reinterpret_cast<const float4*>(q + size_t(n) * D), *const v = k + size_t(n) * D / 4;
    const int row0 = blockIdx.x * THREADS * ROWS + threadIdx.x;
    float mine[ROWS][D];
    Sum o[ROWS][D], m[ROWS], l[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        m[r] = -INFINITY, l[r] = 0;
#pragma unroll
        for (int x = 0; x < D; ++x) mine[r][x] = q[size_t(row0 + r * THREADS) * D + x] * scale, o[r][x] = 0;
    }
    for (int first = 0; first < n; first += TILE) {
        __syncthreads();
        for (int i = threadIdx.x; i < TILE * D / 4; i += THREADS) {
            k_tile[i / (D / 4)][i % (D / 4)] = k[size_t(first) * D / 4 + i];
            v_tile[i / (D / 4)][i % (D / 4)] = v[size_t(first) * D / 4 + i];
        }
        __syncthreads();
        for (int key = 0; key < TILE; ++key) {
#ifdef BARRIER
            __syncthreads();
#endif
            Sum s[ROWS] = {}, p[ROWS], fade[ROWS];
#pragma unroll
            for (int x = 0; x < D / 4; ++x) {
                const float4 part = k_tile[key][x];
#pragma unroll
                for (int r = 0; r < ROWS; ++r)
                    s[r] += Sum(mine[r][4 * x] * part.x) + mine[r][4 * x + 1] * part.y + mine[r][4 * x + 2] * part.z + mine[r][4 * x + 3] * part.w;
            }
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const Sum top = s[r] > m[r] ? s[r] : m[r];
                fade[r] = exp(m[r] - top), p[r] = exp(s[r] - top), l[r] = l[r] * fade[r] + p[r], m[r] = top;
            }
#pragma unroll
            for (int x = 0; x < D / 4; ++x) {
                const float4 part = v_tile[key][x];
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    o[r][4 * x] = o[r][4 * x] * fade[r] + p[r] * part.x;
                    o[r][4 * x + 1] = o[r][4 * x + 1] * fade[r] + p[r] * part.y;
                    o[r][4 * x + 2] = o[r][4 * x + 2] * fade[r] + p[r] * part.z;
                    o[r][4 * x + 3] = o[r][4 * x + 3] * fade[r] + p[r] * part.w;
                }
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int x = 0; x < D; ++x) output[(size_t(blockIdx.y) * n + row0 + r * THREADS) * D + x] = float(o[r][x] / l[r]);
}
void run(const float* input, float* output, int batches, int n, int d, float scale) {
    const auto kernel = d == 32 ? forward<32> : forward<64>;
    allow_shared(kernel, EXTRA);
    kernel<<<dim3(n / THREADS / ROWS, batches), THREADS, EXTRA>>>(input, output, n, scale);
}
#elif STYLE == 17
__global__ void forward(const float* input, float* output, float* l, float* m, int n, int d, int first, float scale) {
    extern __shared__ float shared[];
    const int t = threadIdx.x, stride = d + PAD, row = blockIdx.x * THREADS + t;
    float *const k_tile = shared, *const v_tile = k_tile + TILE * stride, *const q_tile = v_tile + TILE * stride;
    const float *const q = input + size_t(blockIdx.y) * 3 * n * d, *const k = q + size_t(n) * d, *const v = k + size_t(n) * d;
    float* const o = output + (size_t(blockIdx.y) * n + row) * d;
    for (int i = t; i < TILE * d; i += THREADS) {
        k_tile[i / d * stride + i % d] = k[size_t(first) * d + i];
        v_tile[i / d * stride + i % d] = v[size_t(first) * d + i];
    }
    for (int i = t; i < THREADS * d; i += THREADS) q_tile[i / d * stride + i % d] = q[size_t(blockIdx.x) * THREADS * d + i];
    __syncthreads();
    float s[TILE], top = -FLT_MAX, sum = 0.0f;
    for (int y = 0; y < TILE; ++y) {
        s[y] = 0.0f;
        for (int x = 0; x < d; ++x) s[y] += q_tile[t * stride + x] * k_tile[y * stride + x];
        s[y] *= scale;
        top = fmaxf(top, s[y]);
    }
    const size_t at = size_t(blockIdx.y) * n + row;
    const float old_m = m[at], old_l = l[at], new_m = fmaxf(old_m, top);
    for (int y = 0; y < TILE; ++y) sum += s[y] = expf(s[y] - new_m);
    const float fade = expf(old_m - new_m), new_l = old_l * fade + sum;
    for (int x = 0; x < d; ++x) {
        float pv = 0.0f;
        for (int y = 0; y < TILE; ++y) pv += s[y] * v_tile[y * stride + x];
        o[x] = (o[x] * old_l * fade + pv) / new_l;
    }
    m[at] = new_m, l[at] = new_l;
}
void run(const float* input, float* output, int batches, int n, int d, float scale) {
    float *const l = scratch<0>(size_t(batches) * n), *const m = scratch<1>(size_t(batches) * n);
    fill<<<256, 256>>>(l, size_t(batches) * n, 0.0f);
    fill<<<256, 256>>>(m, size_t(batches) * n, -FLT_MAX);
    fill<<<1024, 256>>>(output, size_t(batches) * n * d, 0.0f);
    const int bytes = (2 * TILE + THREADS) * (d + PAD) * int(sizeof(float));
    allow_shared(forward, bytes);
    for (int first = 0; first < n; first += TILE)
        forward<<<dim3(n / THREADS, batches), THREADS, bytes>>>(input, output, l, m, n, d, first, scale);
}
#elif STYLE == 18
__global__ void product(const float* input, float* s, int n, int d, int first, float scale) {
    const int x = threadIdx.x, row = blockIdx.x * blockDim.y + threadIdx.y;
    const float *const q = input + size_t(blockIdx.y) * 3 * n * d, *const k = q + size_t(n) * d;
    float sum = 0.0f;
    for (int t = 0; t < d; t++) sum += q[size_t(row) * d + t] * k[size_t(first + x) * d + t];
    s[(size_t(blockIdx.y) * n + row) * TILE + x] = sum * scale;
}
__global__ void row_max(const float* s, float* top, size_t rows) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    float most = s[i * TILE];
    for (int j = 1; j < TILE; j++) most = fmaxf(most, s[i * TILE + j]);
    top[i] = most;
}
__global__ void exponentials(float* s, const float* top, size_t count) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) s[i] = expf(s[i] - top[i / TILE]);
}
__global__ void row_sum(const float* s, float* sum, size_t rows) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    float total = 0.0f;
    for (int j = 0; j < TILE; j++) total += s[i * TILE + j];
    sum[i] = total;
}
__global__ void update(const float* input, const float* s, const float* top, const float* sum, float* m, float* l, float* o, int n, int d, int first) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    const size_t at = size_t(blockIdx.y) * n + row;
    const float* const v = input + (size_t(blockIdx.y) * 3 + 2) * n * d + size_t(first) * d;
    const float old_m = m[at], new_m = fmaxf(old_m, top[at]), fade = expf(old_m - new_m), grow = expf(top[at] - new_m);
    const float old_l = l[at], new_l = fade * old_l + grow * sum[at];
    for (int x = 0; x < d; x++) {
        float pv = 0.0f;
        for (int j = 0; j < TILE; j++) pv += s[at * TILE + j] * v[j * d + x];
        o[at * d + x] = (old_l * fade * o[at * d + x] + grow * pv) / new_l;
    }
    m[at] = new_m, l[at] = new_l;
}
void run(const float* input, float* output, int batches, int n, int d, float scale) {
    const size_t rows = size_t(batches) * n;
    float *const l = scratch<0>(rows), *const m = scratch<1>(rows), *const s = scratch<2>(rows * TILE), *const top = scratch<3>(rows), *const sum = scratch<4>(rows);
    fill<<<256, 256>>>(l, rows, 0.0f);
    fill<<<256, 256>>>(m, rows, -FLT_MAX);
    fill<<<1024, 256>>>(output, rows * d, 0.0f);
    for (int first = 0; first < n; first += TILE) {
        product<<<dim3(n / (256 / TILE), batches), dim3(TILE, 256 / TILE)>>>(input, s, n, d, first, scale);
        row_max<<<rows / 128, 128>>>(s, top, rows);
        exponentials<<<rows * TILE / 256, 256>>>(s, top, rows * TILE);
        row_sum<<<rows / 128, 128>>>(s, sum, rows);
        update<<<dim3(n / THREADS, batches), THREADS>>>(input, s, top, sum, m, l, output, n, d, first);
    }
}
#elif STYLE == 19
template <int D>
__global__ void __launch_bounds__(256) forward(const float* __restrict__ input, float* __restrict__ output, int n, float scale) {
    extern __shared__ float shared[];
    float(*const q_tile)[128 + 4] = reinterpret_cast<float(*)[132]>(shared);    // transposed
    float(*const k_tile)[64 + 4] = reinterpret_cast<float(*)[68]>(q_tile + D);    // transposed
    float(*const v_tile)[D] = reinterpret_cast<float(*)[D]>(k_tile + D);
    float(*const p_tile)[64 + 1] = reinterpret_cast<float(*)[65]>(v_tile + 64);
    const float *const q = input + size_t(blockIdx.y) * 3 * n * D, *const k = q + size_t(n) * D, *const v = k + size_t(n) * D;
    const int x = threadIdx.x % 16, y = threadIdx.x / 16;
    const size_t row = size_t(blockIdx.x) * 128;
    float o[8][D / 16] = {}, m[8], l[8] = {};
    for (int i = 0; i < 8; ++i) m[i] = -INFINITY;
    for (int i = threadIdx.x; i < 128 * D; i += 256) q_tile[i % D][i / D] = q[row * D + i] * scale;
    for (int first = 0; first < n; first += 64) {
        __syncthreads();
        for (int i = threadIdx.x; i < 64 * D; i += 256) {
            k_tile[i % D][i / D] = k[size_t(first) * D + i];
            v_tile[i / D][i % D] = v[size_t(first) * D + i];
        }
        __syncthreads();
        float s[8][4] = {};
#pragma unroll 8
        for (int c = 0; c < D; ++c) {
            float a[8], b[4];
            *reinterpret_cast<float4*>(a) = *reinterpret_cast<const float4*>(&q_tile[c][y * 8]);
            *reinterpret_cast<float4*>(a + 4) = *reinterpret_cast<const float4*>(&q_tile[c][y * 8 + 4]);
            *reinterpret_cast<float4*>(b) = *reinterpret_cast<const float4*>(&k_tile[c][x * 4]);
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) s[i][j] += a[i] * b[j];
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            float top = fmaxf(fmaxf(s[i][0], s[i][1]), fmaxf(s[i][2], s[i][3])), sum = 0.0f;
            for (int step = 8; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
            top = fmaxf(top, m[i]);
#pragma unroll
            for (int j = 0; j < 4; ++j) sum += p_tile[y * 8 + i][x * 4 + j] = __expf(s[i][j] - top);
            for (int step = 8; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
            const float fade = __expf(m[i] - top);
            l[i] = l[i] * fade + sum, m[i] = top;
#pragma unroll
            for (int c = 0; c < D / 16; ++c) o[i][c] *= fade;
        }
        __syncthreads();
#pragma unroll 4
        for (int j = 0; j < 64; ++j) {
            float b[D / 16];
#pragma unroll
            for (int c = 0; c < D / 16; ++c) b[c] = v_tile[j][x + 16 * c];
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int c = 0; c < D / 16; ++c) o[i][c] += p_tile[y * 8 + i][j] * b[c];
        }
    }
    for (int i = 0; i < 8; ++i)
        for (int c = 0; c < D / 16; ++c) output[(size_t(blockIdx.y) * n + row + y * 8 + i) * D + x + 16 * c] = o[i][c] / l[i];
}
void run(const float* input, float* output, int batches, int n, int d, float scale) {
    const auto kernel = d == 32 ? forward<32> : forward<64>;
    const int bytes = (d * 132 + d * 68 + 64 * d + 128 * 65) * int(sizeof(float));
    allow_shared(kernel, bytes);
    kernel<<<dim3(n / 128, batches), 256, bytes>>>(input, output, n, scale);
}
#elif STYLE == 20
namespace wmma = nvcuda::wmma;
template <int D>
__global__ void forward(const float* input, float* output, int n, float scale) {
    __shared__ float k_tile[16][D + PAD], v_tile[16][D + PAD], s_tile[THREADS / 32][16][16], o_tile[THREADS / 32][16][D];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = (blockIdx.x * (THREADS / 32) + warp) * 16;
    const float *const q = input + size_t(blockIdx.y) * 3 * n * D, *const k = q + size_t(n) * D, *const v = k + size_t(n) * D;
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> a[D / 8], p;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> b;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> c;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> s, o;
    for (int t = 0; t < D / 8; ++t) {
        wmma::load_matrix_sync(a[t], q + size_t(row) * D + 8 * t, D);
        for (int i = 0; i < a[t].num_elements; ++i) a[t].x[i] = wmma::__float_to_tf32(a[t].x[i] * scale);
    }
    for (int i = lane; i < 16 * D; i += 32) o_tile[warp][i / D][i % D] = 0.0f;
    float m = -INFINITY, l = 0.0f;
    for (int first = 0; first < n; first += 16) {
        __syncthreads();
        for (int i = threadIdx.x; i < 16 * D; i += THREADS) {
            k_tile[i / D][i % D] = k[size_t(first) * D + i];
            v_tile[i / D][i % D] = v[size_t(first) * D + i];
        }
        __syncthreads();
        wmma::fill_fragment(s, 0.0f);
        for (int t = 0; t < D / 8; ++t) {
            wmma::load_matrix_sync(b, &k_tile[0][8 * t], D + PAD);
            for (int i = 0; i < b.num_elements; ++i) b.x[i] = wmma::__float_to_tf32(b.x[i]);
            wmma::mma_sync(s, a[t], b, s);
        }
        wmma::store_matrix_sync(&s_tile[warp][0][0], s, 16, wmma::mem_row_major);
        __syncwarp();
        float fade = 1.0f;
        if (lane < 16) {
            float top = m, sum = 0.0f;
            for (int j = 0; j < 16; ++j) top = fmaxf(top, s_tile[warp][lane][j]);
            for (int j = 0; j < 16; ++j) sum += s_tile[warp][lane][j] = __expf(s_tile[warp][lane][j] - top);
            fade = __expf(m - top), l = l * fade + sum, m = top;
            for (int x = 0; x < D; ++x) o_tile[warp][lane][x] *= fade;
        }
        __syncwarp();
        for (int x = 0; x < D; x += 16) {
            wmma::load_matrix_sync(o, &o_tile[warp][0][x], D, wmma::mem_row_major);
            for (int t = 0; t < 2; ++t) {
                wmma::load_matrix_sync(p, &s_tile[warp][0][8 * t], 16);
                wmma::load_matrix_sync(c, &v_tile[8 * t][x], D + PAD);
                for (int i = 0; i < p.num_elements; ++i) p.x[i] = wmma::__float_to_tf32(p.x[i]);
                for (int i = 0; i < c.num_elements; ++i) c.x[i] = wmma::__float_to_tf32(c.x[i]);
                wmma::mma_sync(o, p, c, o);
            }
            wmma::store_matrix_sync(&o_tile[warp][0][x], o, D, wmma::mem_row_major);
        }
        __syncwarp();
    }
    for (int r = 0; r < 16; ++r) {
        const float sum = __shfl_sync(~0u, l, r);
        for (int x = lane; x < D; x += 32) output[(size_t(blockIdx.y) * n + row + r) * D + x] = o_tile[warp][r][x] / sum;
    }
}
void run(const float* input, float* output, int batches, int n, int d, float scale) {
    const auto kernel = d == 32 ? forward<32> : forward<64>;
    kernel<<<dim3(n / 16 / (THREADS / 32), batches), THREADS>>>(input, output, n, scale);
}
#elif STYLE == 21
template <int D>
__global__ void forward(const float* input, float* output, int n, float scale) {
    __shared__ float k_tile[TILE][D + PAD], v_tile[TILE][D + PAD];
    constexpr int PART = D / ROWS;
    const int part = threadIdx.x % ROWS, row = blockIdx.x * (THREADS / ROWS) + threadIdx.x / ROWS;
    const float *const q = input + size_t(blockIdx.y) * 3 * n * D, *const k = q + size_t(n) * D, *const v = k + size_t(n) * D;
    float mine[PART], o[PART] = {}, m = -INFINITY, l = 0.0f;
    for (int c = 0; c < PART; ++c) mine[c] = q[size_t(row) * D + part * PART + c] * scale;
    for (int first = 0; first < n; first += TILE) {
        __syncthreads();
        for (int i = threadIdx.x; i < TILE * D; i += THREADS) {
            k_tile[i / D][i % D] = k[size_t(first) * D + i];
            v_tile[i / D][i % D] = v[size_t(first) * D + i];
        }
        __syncthreads();
        for (int key = 0; key < TILE; ++key) {
            float s = 0.0f;
#pragma unroll
            for (int c = 0; c < PART; ++c) s += mine[c] * k_tile[key][part * PART + c];
            for (int step = ROWS / 2; step > 0; step /= 2) s += __shfl_xor_sync(~0u, s, step);
            if (s > m) {
                const float fade = __expf(m - s);
                l *= fade, m = s;
#pragma unroll
                for (int c = 0; c < PART; ++c) o[c] *= fade;
            }
            const float p = __expf(s - m);
            l += p;
#pragma unroll
            for (int c = 0; c < PART; ++c) o[c] += p * v_tile[key][part * PART + c];
        }
    }
    for (int c = 0; c < PART; ++c) output[(size_t(blockIdx.y) * n + row) * D + part * PART + c] = o[c] / l;
}
void run(const float* input, float* output, int batches, int n, int d, float scale) {
    const auto kernel = d == 32 ? forward<32> : forward<64>;
    kernel<<<dim3(n / (THREADS / ROWS), batches), THREADS>>>(input, output, n, scale);
}
#elif STYLE == 22
template <int D>
__global__ void forward(const float* input, float* output, int n, float scale) {
    __shared__ float tile[TILE][D], v_tile[TILE][D];
    const int row = blockIdx.x * THREADS + threadIdx.x;
    const float *const q = input + size_t(blockIdx.y) * 3 * n * D, *const k = q + size_t(n) * D, *const v = k + size_t(n) * D;
    float mine[D], o[D] = {}, m = -INFINITY, l = 0.0f;
    for (int x = 0; x < D; ++x) mine[x] = q[size_t(row) * D + x] * scale;
    for (int pass = 0; pass < 2; ++pass)
        for (int first = 0; first < n; first += TILE) {
            __syncthreads();
            for (int i = threadIdx.x; i < TILE * D; i += THREADS) {
                tile[i / D][i % D] = k[size_t(first) * D + i];
                if (pass) v_tile[i / D][i % D] = v[size_t(first) * D + i];
            }
            __syncthreads();
            for (int key = 0; key < TILE; ++key) {
                float s = 0.0f;
#pragma unroll
                for (int x = 0; x < D; ++x) s += mine[x] * tile[key][x];
                if (pass == 0) {
                    const float top = fmaxf(m, s);
                    l = l * expf(m - top) + expf(s - top), m = top;
                } else {
                    const float p = expf(s - m) / l;
#pragma unroll
                    for (int x = 0; x < D; ++x) o[x] += p * v_tile[key][x];
                }
            }
        }
    for (int x = 0; x < D; ++x) output[(size_t(blockIdx.y) * n + row) * D + x] = o[x];
}
void run(const float* input, float* output, int batches, int n, int d, float scale) {
    const auto kernel = d == 32 ? forward<32> : forward<64>;
    kernel<<<dim3(n / THREADS, batches), THREADS>>>(input, output, n, scale);
}
#elif STYLE == 24
template <int D>
__global__ void forward(const float* __restrict__ input, float* __restrict__ output, int n, float scale) {
    const float *const q = input + size_t(blockIdx.y) * 3 * n * D, *const k = q + size_t(n) * D, *const v = k + size_t(n) * D;
    const int row = blockIdx.x * THREADS + threadIdx.x;
    float mine[D], o[D] = {}, m = -INFINITY, l = 0.0f;
    for (int x = 0; x < D; ++x) mine[x] = q[size_t(row) * D + x] * scale * 1.44269504f;
    for (int key = 0; key < n; key += 4) {
        float s[4] = {};
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int x = 0; x < D; ++x) s[j] += mine[x] * __ldg(k + size_t(key + j) * D + x);
        const float top = fmaxf(fmaxf(fmaxf(s[0], s[1]), fmaxf(s[2], s[3])), m), fade = exp2f(m - top);
        m = top, l *= fade;
#pragma unroll
        for (int x = 0; x < D; ++x) o[x] *= fade;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float p = exp2f(s[j] - top);
            l += p;
#pragma unroll
            for (int x = 0; x < D; ++x) o[x] += p * __ldg(v + size_t(key + j) * D + x);
        }
    }
    for (int x = 0; x < D; ++x) output[(size_t(blockIdx.y) * n + row) * D + x] = o[x] / l;
}
void run(const float* input, float* output, int batches, int n, int d, float scale) {
    const auto kernel = d == 32 ? forward<32> : forward<64>;
    kernel<<<dim3(n / THREADS, batches), THREADS>>>(input, output, n, scale);
}
#elif STYLE == 25
template <int D>
__global__ void forward(const float* input, float* output, int n, float scale) {
    __shared__ __align__(16) float k_tile[2][TILE][D], v_tile[2][TILE][D];
    const int row = blockIdx.x * THREADS + threadIdx.x;
    const float *const q = input + size_t(blockIdx.y) * 3 * n * D, *const k = q + size_t(n) * D, *const v = k + size_t(n) * D;
    float mine[D], o[D] = {}, m = -INFINITY, l = 0.0f;
    for (int x = 0; x < D; ++x) mine[x] = q[size_t(row) * D + x] * scale;
    const auto load = [&](int tile) {
        for (int i = threadIdx.x; i < TILE * D / 4; i += THREADS) {
            __pipeline_memcpy_async(&k_tile[tile % 2][0][0] + 4 * i, k + size_t(tile) * TILE * D + 4 * i, 16);
            __pipeline_memcpy_async(&v_tile[tile % 2][0][0] + 4 * i, v + size_t(tile) * TILE * D + 4 * i, 16);
        }
        __pipeline_commit();
    };
    load(0);
    for (int tile = 0; tile < n / TILE; ++tile) {
        if (tile + 1 < n / TILE) load(tile + 1);
        else __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        for (int key = 0; key < TILE; ++key) {
            float s = 0.0f;
#pragma unroll
            for (int x = 0; x < D; ++x) s += mine[x] * k_tile[tile % 2][key][x];
            const float top = fmaxf(m, s), fade = __expf(m - top), p = __expf(s - top);
            l = l * fade + p, m = top;
#pragma unroll
            for (int x = 0; x < D; ++x) o[x] = o[x] * fade + p * v_tile[tile % 2][key][x];
        }
        __syncthreads();
    }
    for (int x = 0; x < D; ++x) output[(size_t(blockIdx.y) * n + row) * D + x] = o[x] / l;
}
void run(const float* input, float* output, int batches, int n, int d, float scale) {
    const auto kernel = d == 32 ? forward<32> : forward<64>;
    kernel<<<dim3(n / THREADS, batches), THREADS>>>(input, output, n, scale);
}
#elif STYLE == 26
template <int D>
__global__ void forward(const float* input, float* output, int n, float scale) {
    __shared__ float q_tile[THREADS][D + PAD], k_tile[TILE][D], v_tile[TILE][D];
    const int t = threadIdx.x, row = blockIdx.x * THREADS;
    const float *const q = input + size_t(blockIdx.y) * 3 * n * D, *const k = q + size_t(n) * D, *const v = k + size_t(n) * D;
    for (int i = t; i < THREADS * D; i += THREADS) q_tile[i / D][i % D] = q[size_t(row) * D + i];
    float s[TILE], o[D] = {}, m = -FLT_MAX, l = 0.0f;
    for (int first = 0; first < n; first += TILE) {
        __syncthreads();
        for (int i = t; i < TILE * D; i += THREADS) {
            k_tile[i / D][i % D] = k[size_t(first) * D + i];
            v_tile[i / D][i % D] = v[size_t(first) * D + i];
        }
        __syncthreads();
        float top = m;
        for (int j = 0; j < TILE; j++) {
            float sum = 0;
            for (int x = 0; x < D; x++) sum += q_tile[t][x] * k_tile[j][x];
            s[j] = sum * scale;
            top = fmaxf(top, s[j]);
        }
        const float fade = expf(m - top);
        l *= fade;
        for (int j = 0; j < TILE; j++) l += s[j] = expf(s[j] - top);
        for (int x = 0; x < D; x++) {
            float pv = 0;
            for (int j = 0; j < TILE; j++) pv += s[j] * v_tile[j][x];
            o[x] = o[x] * fade + pv;
        }
        m = top;
    }
    for (int x = 0; x < D; ++x) output[(size_t(blockIdx.y) * n + row + t) * D + x] = o[x] / l;
}
void run(const float* input, float* output, int batches, int n, int d, float scale) {
    const auto kernel = d == 32 ? forward<32> : forward<64>;
    kernel<<<dim3(n / THREADS, batches), THREADS>>>(input, output, n, scale);
}
#elif STYLE == 27
template <int D>
__global__ void forward(const float* input, float* part, int n, float scale) {
    __shared__ float k_tile[TILE][D], v_tile[TILE][D];
    const int row = blockIdx.x * THREADS + threadIdx.x, begin = n / ROWS * blockIdx.z, end = begin + n / ROWS;
    const float *const q = input + size_t(blockIdx.y) * 3 * n * D, *const k = q + size_t(n) * D, *const v = k + size_t(n) * D;
    float mine[D], o[D] = {}, m = -INFINITY, l = 0.0f;
    for (int x = 0; x < D; ++x) mine[x] = q[size_t(row) * D + x] * scale;
    for (int first = begin; first < end; first += TILE) {
        __syncthreads();
        for (int i = threadIdx.x; i < TILE * D; i += THREADS) {
            k_tile[i / D][i % D] = k[size_t(first) * D + i];
            v_tile[i / D][i % D] = v[size_t(first) * D + i];
        }
        __syncthreads();
        for (int key = 0; key < TILE; ++key) {
            float s = 0.0f;
#pragma unroll
            for (int x = 0; x < D; ++x) s += mine[x] * k_tile[key][x];
            const float top = fmaxf(m, s), fade = __expf(m - top), p = __expf(s - top);
            l = l * fade + p, m = top;
#pragma unroll
            for (int x = 0; x < D; ++x) o[x] = o[x] * fade + p * v_tile[key][x];
        }
    }
    float* const mine_part = part + ((size_t(blockIdx.y) * n + row) * ROWS + blockIdx.z) * (D + 2);
    for (int x = 0; x < D; ++x) mine_part[x] = o[x];
    mine_part[D] = m, mine_part[D + 1] = l;
}
template <int D>
__global__ void combine(const float* part, float* output) {
    const size_t row = size_t(blockIdx.x) * blockDim.y + threadIdx.y;
    part += row * ROWS * (D + 2);
    float top = -INFINITY, sum = 0.0f, o = 0.0f;
    for (int r = 0; r < ROWS; ++r) top = fmaxf(top, part[r * (D + 2) + D]);
    for (int r = 0; r < ROWS; ++r) {
        const float share = __expf(part[r * (D + 2) + D] - top);
        sum += share * part[r * (D + 2) + D + 1], o += share * part[r * (D + 2) + threadIdx.x];
    }
    output[row * D + threadIdx.x] = o / sum;
}
void run(const float* input, float* output, int batches, int n, int d, float scale) {
    float* const part = scratch<0>(size_t(batches) * n * ROWS * (d + 2));
    if (d == 32) forward<32><<<dim3(n / THREADS, batches, ROWS), THREADS>>>(input, part, n, scale);
    else forward<64><<<dim3(n / THREADS, batches, ROWS), THREADS>>>(input, part, n, scale);
    if (d == 32) combine<32><<<size_t(batches) * n / 8, dim3(32, 8)>>>(part, output);
    else combine<64><<<size_t(batches) * n / 4, dim3(64, 4)>>>(part, output);
}
#elif STYLE == 28
__global__ void forward(const float* input, float* output, int n, int d, float scale) {
    extern __shared__ float shared[];
    const int x = threadIdx.x, y = threadIdx.y, stride = d + PAD;
    float *const q_tile = shared, *const kv_tile = q_tile + 32 * stride, *const s = kv_tile + TILE * stride, *const fade = s + 32 * (TILE + PAD);
    float *const m = fade + 32, *const l = m + 32;
    const float *const q = input + size_t(blockIdx.y) * 3 * n * d, *const k = q + size_t(n) * d, *const v = k + size_t(n) * d;
    const int row = blockIdx.x * 32;
    for (int i = y * 32 + x; i < 32 * d; i += 256) q_tile[i / d * stride + i % d] = q[size_t(row) * d + i] * scale;
    if (y == 0) m[x] = -INFINITY, l[x] = 0.0f;
    float o[4][2] = {};    // rows y, y + 8, ...; columns x, x + 32
    for (int first = 0; first < n; first += TILE) {
        __syncthreads();
        for (int i = y * 32 + x; i < TILE * d; i += 256) kv_tile[i / d * stride + i % d] = k[size_t(first) * d + i];
        __syncthreads();
        for (int r = y; r < 32; r += 8)
            for (int j = x; j < TILE; j += 32) {
                float sum = 0.0f;
                for (int c = 0; c < d; ++c) sum += q_tile[r * stride + c] * kv_tile[j * stride + c];
                s[r * (TILE + PAD) + j] = sum;
            }
        __syncthreads();
        if (y == 0) {    // a thread per row
            float top = m[x], sum = 0.0f;
            for (int j = 0; j < TILE; ++j) top = fmaxf(top, s[x * (TILE + PAD) + j]);
            for (int j = 0; j < TILE; ++j) sum += s[x * (TILE + PAD) + j] = __expf(s[x * (TILE + PAD) + j] - top);
            fade[x] = __expf(m[x] - top), l[x] = l[x] * fade[x] + sum, m[x] = top;
        }
        for (int i = y * 32 + x; i < TILE * d; i += 256) kv_tile[i / d * stride + i % d] = v[size_t(first) * d + i];
        __syncthreads();
        for (int r = 0; r < 4; ++r)
            for (int c = 0; c < 2 && 32 * c < d; ++c) {
                float sum = 0.0f;
                for (int j = 0; j < TILE; ++j) sum += s[(y + 8 * r) * (TILE + PAD) + j] * kv_tile[j * stride + 32 * c + x];
                o[r][c] = o[r][c] * fade[y + 8 * r] + sum;
            }
    }
    for (int r = 0; r < 4; ++r)
        for (int c = 0; c < 2 && 32 * c < d; ++c)
            output[(size_t(blockIdx.y) * n + row + y + 8 * r) * d + 32 * c + x] = o[r][c] / l[y + 8 * r];
}
void run(const float* input, float* output, int batches, int n, int d, float scale) {
    const int bytes = ((32 + TILE) * (d + PAD) + 32 * (TILE + PAD) + 96) * int(sizeof(float));
    allow_shared(forward, bytes);
    forward<<<dim3(n / 32, batches), dim3(32, 8), bytes>>>(input, output, n, d, scale);
}
#elif STYLE == 29
template <int D>
__global__ void forward(const float* input, float* output, int n, float scale) {
    __shared__ __half2 k_tile[TILE][D / 2], v_tile[TILE][D / 2];
    const int row = blockIdx.x * THREADS + threadIdx.x;
    const float *const q = input + size_t(blockIdx.y) * 3 * n * D, *const k = q + size_t(n) * D, *const v = k + size_t(n) * D;
    __half2 mine[D / 2];
    float o[D] = {}, m = -INFINITY, l = 0.0f;
    for (int x = 0; x < D / 2; ++x) mine[x] = __floats2half2_rn(q[size_t(row) * D + 2 * x] * scale, q[size_t(row) * D + 2 * x + 1] * scale);
    for (int first = 0; first < n; first += TILE) {
        __syncthreads();
        for (int i = threadIdx.x; i < TILE * D / 2; i += THREADS) {
            const float2 a = reinterpret_cast<const float2*>(k + size_t(first) * D)[i], b = reinterpret_cast<const float2*>(v + size_t(first) * D)[i];
            k_tile[i / (D / 2)][i % (D / 2)] = __float22half2_rn(a), v_tile[i / (D / 2)][i % (D / 2)] = __float22half2_rn(b);
        }
        __syncthreads();
        for (int key = 0; key < TILE; ++key) {
            __half2 sum = __float2half2_rn(0.0f);
#pragma unroll
            for (int x = 0; x < D / 2; ++x) sum = __hfma2(mine[x], k_tile[key][x], sum);
            const float s = __low2float(sum) + __high2float(sum), top = fmaxf(m, s), fade = __expf(m - top), p = __expf(s - top);
            l = l * fade + p, m = top;
#pragma unroll
            for (int x = 0; x < D / 2; ++x) {
                const float2 part = __half22float2(v_tile[key][x]);
                o[2 * x] = o[2 * x] * fade + p * part.x, o[2 * x + 1] = o[2 * x + 1] * fade + p * part.y;
            }
        }
    }
    for (int x = 0; x < D; ++x) output[(size_t(blockIdx.y) * n + row) * D + x] = o[x] / l;
}
void run(const float* input, float* output, int batches, int n, int d, float scale) {
    const auto kernel = d == 32 ? forward<32> : forward<64>;
    kernel<<<dim3(n / THREADS, batches), THREADS>>>(input, output, n, scale);
}
#endif

extern "C" void solve(const float* input, float* output, int batches, int n, int d) {
    run(input, output, batches, n, d, 1.0f / std::sqrt(float(d)));
}
