// Attention forward, step 1 of the fast ones: the whole loop over keys inside one kernel, tuned for CUDA cores.
//
// Theory of operation
//
//   What is new. tiled.cu sends m, l and O through global memory once per tile of keys. Nothing forces that: a query
//   row never needs another row's results, so one block can take a tile of rows, walk over all keys, and keep m, l
//   and O in registers from the first key to the last. Global memory then sees Q and O once, and K and V once per
//   tile of rows. This is the loop order of FlashAttention-2 (Dao 2023): rows outside, keys inside.
//
//   Work per warp. The lanes form a grid of 32 / (d / 8) row groups by d / 8 column groups, and every lane owns 8
//   rows by 8 columns, of S (columns are keys) and of O alike: 32 rows a warp for d = 64, 64 rows for d = 32, and d
//   keys at a time. Two warps make a block for d = 32, four for d = 64.
//
//       rows       8 * row_group + 0..7
//       columns    4 * column_group + 0..3   and   d / 2 + 4 * column_group + 0..3
//
//   In both products a lane loads 16 times 4 floats from shared memory for 256 multiply-adds. That ratio is the point
//   of the patch: with one score per thread it is two loads for one multiply-add, and the kernel waits for shared
//   memory.
//
//   Softmax. exp(s / sqrt(d)) is one multiply-add and one exp2 with log2(e) / sqrt(d) folded into a factor. Row
//   maxima are exchanged among the lanes that share a row. The row sums l are not: each lane sums its own keys, all
//   rescale by the same factor, and the partial sums meet once, after the last key.
//
//   P V. The probabilities must change hands, because the lane that computed a score is not the one that needs it for
//   its columns of O. They pass through a buffer of the warp's own.
//
//   Copies. K is needed for S and V for O, so each is copied while the other is used (cp.async, 16 bytes a thread; on
//   Turing the same calls are plain copies): one buffer of each is enough, with two barriers per step.
//
//   Shared memory. Of the lanes that load together (8, since each takes 16 bytes) those that want different rows must
//   find them in different banks. Neighbouring groups' rows are therefore stored next to each other, 16 bytes more
//   than a row apart: 8 different starts, 32 different banks. Places are linear, so that all addresses of an unrolled
//   loop are one register and constants; the XOR patterns that need no padding cost 10 % more instructions.
//
//   Accuracy. A sum of N numbers in order, each of its roundings at full size, is wrong by 1.5e-5 on t23. P V of a
//   step and its part of l are summed from zero and then added to O and l, which takes no extra instruction: O has to
//   be multiplied by 2^(m - m') anyway, and a multiply-add does both. That brings t23 to 5.4e-6; PyTorch has 6.7e-6.
//
//   Gained over tiled.cu, on an H200: t23 264 -> 5.92 ms, t24 502 -> 10.5 ms. The multiply-adds alone would need 54
//   and 61 % of that at the highest clock. What is left: warps that wait for shared memory (registers allow only 8 of
//   them a multiprocessor), operands that meet in one register bank, and, for d = 32, a softmax that is shared by half
//   as many multiply-adds.
//
//   Cost. 4 B N² d floating-point operations, B N² exponentials; 254 registers.
//
// Needs sm_75 or newer. Build: nvcc -O3 -std=c++17 -arch=native flash2.cu -o hw4

#include <cmath>

#include <cuda_pipeline_primitives.h>

#include "whole_program.cuh"

namespace flash2 {

constexpr int kPatch = 8;    // a lane's patch is kPatch x kPatch in both products

template <int D, int Warps>
struct Tile {
    static constexpr int ColumnGroups = D / kPatch;           // lanes side by side: 4 or 8
    static constexpr int RowGroups = 32 / ColumnGroups;       // lanes one above the other: 8 or 4
    static constexpr int WarpRows = RowGroups * kPatch;       // 64 or 32
    static constexpr int Rows = Warps * WarpRows;
    static constexpr int Keys = D;                            // per step: makes the patches of S and O the same size
    static constexpr int Threads = Warps * 32;

    // Floats from one row to the next in shared memory.
    static constexpr int QStride = D == 32 ? D + 4 : D, KStride = D + 4, VStride = D, PStride = D == 32 ? 48 : 64;
    static constexpr size_t SharedBytes =
        sizeof(float) * (size_t(Rows) * QStride + Keys * KStride + Keys * VStride + size_t(Rows) * PStride);

    // Where rows lie in shared memory. Lanes that load together want rows that belong to neighbouring groups, so
    // these are made neighbours: row r of group g is the g-th of the r-th batch.
    static __device__ __forceinline__ int q_place(int row) {
        return row / WarpRows * WarpRows + row % kPatch * RowGroups + row % WarpRows / kPatch;
    }
    static __device__ __forceinline__ int k_place(int key) {
        return key / (Keys / 2) * (Keys / 2) + key % 4 * ColumnGroups + key % (Keys / 2) / 4;
    }
    static __device__ __forceinline__ int v_place(int key) { return key; }
};

// 2^x in one instruction (2 ulp; results below 2^-126 become 0, which no sum here can feel).
__device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float4 load4(const float* from) { return *reinterpret_cast<const float4*>(from); }

// Starts copying Count rows of D floats; row r goes to row place(r) of `to`.
template <int D, int Count, int Threads, int Stride, typename PlaceOf>
__device__ __forceinline__ void start_copy(float* to, const float* from, PlaceOf place) {
#pragma unroll 8
    for (int i = threadIdx.x; i < Count * D / 4; i += Threads)
        __pipeline_memcpy_async(to + place(i / (D / 4)) * Stride + i % (D / 4) * 4, from + 4 * i, 16);
    __pipeline_commit();
}

// One block: Warps * WarpRows query rows of one batch. `scale` is log2(e) / sqrt(D).
template <int D, int Warps>
__global__ void __launch_bounds__(Warps * 32, 8 / Warps)
attention(const float* __restrict__ input, float* __restrict__ output, int n, float scale) {
    using T = Tile<D, Warps>;
    constexpr int ColumnGroups = T::ColumnGroups, Keys = T::Keys, Half = D / 2;

    extern __shared__ float4 shared[];
    float* const q_tile = reinterpret_cast<float*>(shared);
    float* const k_tile = q_tile + T::Rows * T::QStride;
    float* const v_tile = k_tile + Keys * T::KStride;
    float* const p_tiles = v_tile + Keys * T::VStride;

    const int tiles = n / T::Rows;
    const size_t batch = blockIdx.x / tiles;
    const size_t first_row = size_t(blockIdx.x % tiles) * T::Rows;
    const size_t matrix = size_t(n) * D;
    const float* const q = input + 3 * batch * matrix;
    const float* const k = q + matrix;
    const float* const v = k + matrix;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row_group = lane / ColumnGroups, column_group = lane % ColumnGroups;
    const int my_row = warp * T::WarpRows + row_group * kPatch;    // first of the lane's 8 rows within the block
    const float* const my_q = q_tile + (warp * T::WarpRows + row_group) * T::QStride;
    const float* const my_k = k_tile + column_group * T::KStride;
    float* const my_p = p_tiles + (warp * T::WarpRows + row_group) * T::PStride;

    const auto start_k = [&](int key) {
        start_copy<D, Keys, T::Threads, T::KStride>(k_tile, k + size_t(key) * D, T::k_place);
    };
    start_copy<D, T::Rows, T::Threads, T::QStride>(q_tile, q + first_row * D, T::q_place);
    start_k(0);

    float m[kPatch], l[kPatch], o[kPatch][kPatch];
#pragma unroll
    for (int r = 0; r < kPatch; ++r) {
        m[r] = -INFINITY;
        l[r] = 0.0f;
#pragma unroll
        for (int c = 0; c < kPatch; ++c) o[r][c] = 0.0f;
    }

    for (int first_key = 0; first_key < n; first_key += Keys) {
        __pipeline_wait_prior(0);
        __syncthreads();    // K is there, and nobody still reads the previous V
        start_copy<D, Keys, T::Threads, T::VStride>(v_tile, v + size_t(first_key) * D, T::v_place);

        // S = Q Kᵀ. The lane's keys are 4 * column_group + 0..3 and Half more.
        float s[kPatch][kPatch] = {};
#pragma unroll 2
        for (int x = 0; x < D / 4; ++x) {
            float4 b[kPatch];
#pragma unroll
            for (int c = 0; c < kPatch; ++c) b[c] = load4(my_k + c * ColumnGroups * T::KStride + 4 * x);
#pragma unroll
            for (int r = 0; r < kPatch; ++r) {
                const float4 a = load4(my_q + r * T::RowGroups * T::QStride + 4 * x);
#pragma unroll
                for (int c = 0; c < kPatch; ++c) {
                    s[r][c] = fmaf(a.x, b[c].x, s[r][c]);
                    s[r][c] = fmaf(a.y, b[c].y, s[r][c]);
                    s[r][c] = fmaf(a.z, b[c].z, s[r][c]);
                    s[r][c] = fmaf(a.w, b[c].w, s[r][c]);
                }
            }
        }

        // m' = max(m, scale max s),  P = 2^(scale s - m'),  l' = 2^(m - m') l + sum P
        float rescale[kPatch];
#pragma unroll
        for (int r = 0; r < kPatch; ++r) {
            float top = s[r][0];
#pragma unroll
            for (int c = 1; c < kPatch; ++c) top = fmaxf(top, s[r][c]);
#pragma unroll
            for (int other = 1; other < ColumnGroups; other *= 2)
                top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, other));
            top = fmaxf(m[r], top * scale);
            rescale[r] = exp2_fast(m[r] - top);    // 0 at the first step, where m is -infinity
            m[r] = top;
            float sum = 0.0f;
#pragma unroll
            for (int c = 0; c < kPatch; ++c) {
                s[r][c] = exp2_fast(fmaf(s[r][c], scale, -top));
                sum += s[r][c];
            }
            l[r] = fmaf(l[r], rescale[r], sum);
            float* const to = my_p + r * T::RowGroups * T::PStride + 4 * column_group;
            *reinterpret_cast<float4*>(to) = make_float4(s[r][0], s[r][1], s[r][2], s[r][3]);
            *reinterpret_cast<float4*>(to + Half) = make_float4(s[r][4], s[r][5], s[r][6], s[r][7]);
        }

        __pipeline_wait_prior(0);
        __syncthreads();    // V is there, nobody still reads K, and the warp's P is written
        if (first_key + Keys < n) start_k(first_key + Keys);

        // O' = 2^(m - m') O + P V. The step's product is summed on its own first: see "Accuracy".
        float sum[kPatch][kPatch] = {};
#pragma unroll 2
        for (int y = 0; y < Keys / 4; ++y) {
            float4 b[4][2];
#pragma unroll
            for (int key = 0; key < 4; ++key) {
                b[key][0] = load4(v_tile + (4 * y + key) * D + 4 * column_group);
                b[key][1] = load4(v_tile + (4 * y + key) * D + Half + 4 * column_group);
            }
#pragma unroll
            for (int r = 0; r < kPatch; ++r) {
                const float4 a = load4(my_p + r * T::RowGroups * T::PStride + 4 * y);
                const float p[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
                for (int key = 0; key < 4; ++key) {
                    sum[r][0] = fmaf(p[key], b[key][0].x, sum[r][0]);
                    sum[r][1] = fmaf(p[key], b[key][0].y, sum[r][1]);
                    sum[r][2] = fmaf(p[key], b[key][0].z, sum[r][2]);
                    sum[r][3] = fmaf(p[key], b[key][0].w, sum[r][3]);
                    sum[r][4] = fmaf(p[key], b[key][1].x, sum[r][4]);
                    sum[r][5] = fmaf(p[key], b[key][1].y, sum[r][5]);
                    sum[r][6] = fmaf(p[key], b[key][1].z, sum[r][6]);
                    sum[r][7] = fmaf(p[key], b[key][1].w, sum[r][7]);
                }
            }
        }
#pragma unroll
        for (int r = 0; r < kPatch; ++r)
#pragma unroll
            for (int c = 0; c < kPatch; ++c) o[r][c] = fmaf(o[r][c], rescale[r], sum[r][c]);
    }

    float* const out = output + batch * matrix + (first_row + my_row) * D + 4 * column_group;
#pragma unroll
    for (int r = 0; r < kPatch; ++r) {
        float sum = l[r];
#pragma unroll
        for (int other = 1; other < ColumnGroups; other *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, other);
        const float inverse = 1.0f / sum;
#pragma unroll
        for (int half = 0; half < 2; ++half)
            *reinterpret_cast<float4*>(out + r * D + half * Half) =
                make_float4(o[r][4 * half] * inverse, o[r][4 * half + 1] * inverse, o[r][4 * half + 2] * inverse,
                            o[r][4 * half + 3] * inverse);
    }
}

template <int D, int Warps>
cudaError_t launch_tile(const Problem& problem) {
    using T = Tile<D, Warps>;
    const cudaError_t error = cudaFuncSetAttribute(attention<D, Warps>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                   int(T::SharedBytes));
    if (error != cudaSuccess) return error;
    const float scale = float(1.4426950408889634 / std::sqrt(double(D)));
    const unsigned blocks = unsigned(problem.batches) * unsigned(problem.rows / T::Rows);
    attention<D, Warps><<<blocks, T::Threads, T::SharedBytes, problem.stream>>>(problem.input, problem.output,
                                                                               problem.rows, scale);
    return cudaGetLastError();
}

size_t workspace_bytes(int, int, int) { return 0; }

cudaError_t launch(const Problem& problem) {
    if (problem.dim == 32) return launch_tile<32, 2>(problem);
    int device = 0, most_shared = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&most_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error != cudaSuccess) return error;
    const bool large = size_t(most_shared) >= Tile<64, 4>::SharedBytes;
    return large ? launch_tile<64, 4>(problem) : launch_tile<64, 1>(problem);    // Turing has 64 KiB
}

}    // namespace flash2

ATTENTION_PROGRAM(flash2)
