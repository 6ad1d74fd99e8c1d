// Attention forward, step 2 of the fast ones: tensor cores, with the accuracy of float32.
//
// Theory of operation
//
//   What is new. flash2.cu is limited by the CUDA cores: 67 TFLOP/s of float32 on an H200. The tensor cores of the
//   same chip do 990 TFLOP/s, but on halves, whose 11 significant bits give scores that are wrong in the third digit.
//   The way out is to write every float as a sum of two halves,
//
//       x = high + low,    high = half(x),    low = half(x - high)          22 bits together; a float has 24
//
//   and to multiply these: x y = high high + high low + low high, where low low is too small to matter (2^-22). Three
//   products of halves for one of floats, so 330 TFLOP/s in the books, five times the CUDA cores. TF32 has 11 bits
//   too and half the speed, and bfloat16, with 8, would take six products.
//
//   Accuracy. Tensor cores multiply exactly and add in about float32, but they cut where a CUDA core rounds (Fasi et
//   al. 2021), so that errors of long sums do not cancel: they grow with the number of steps. Hence (1) the two small
//   products are summed first and the large one last, which keeps the number of cuts at full size low; (2) the
//   product P V of a tile of 64 keys is summed on its own, from zero, and then added to O by CUDA cores, which round.
//   Adding it costs nothing: O has to be multiplied by 2^(m - m') anyway, and a multiply-add does both. The row sum l
//   is treated likewise.
//
//   Range. Q, K and V are small (at most 3 in this homework; up to 65504 would do). Probabilities are not: most are
//   tiny, and a half has only 14 bits of exponent below 1. They are kept 2^12 times too large, which costs nothing
//   either (it is part of the m that is subtracted in the exponent, and cancels in O / l).
//
//   Work per warp: 32 query rows against 64 keys, as mma.sync.m16n8k16 instructions. These leave S in registers in
//   just the layout in which they want P, so the exchange through shared memory that flash2.cu needs falls away. Four
//   warps make a block of 128 rows; two blocks share a multiprocessor.
//
//   Splitting. Q is split when it is loaded. K and V are used by every block of their batch, so a first kernel splits
//   them, once, into tiles in exactly the layout in which the second wants them in shared memory (cp.async then
//   copies straight through, the next tile while this one is used):
//
//       [K, V][high, low][d / 8][64 keys][8 halves]
//
//   8 keys by 8 halves, what ldmatrix fetches at a time, are 128 adjacent bytes: no bank conflicts, no padding. For
//   short rows (n < 1024) the extra trip through memory costs more than it saves, and every block splits for itself.
//
//   Gained over flash2.cu, on an H200 (median of 20): t12 1.07 -> 0.48 ms, t23 5.92 -> 1.91 ms, t24 10.5 -> 3.35 ms;
//   and the largest error falls as well, on t23 from 5.4e-6 to 3.1e-6.
//
//   Cost. 12 B N² d operations for the tensor cores instead of 4; a workspace of 2/3 of the input; 255 registers, a
//   few of them spilled; and a range that ends at 65504.
//
// Needs sm_80 or newer. Build: nvcc -O3 -std=c++17 -arch=native tensor_cores.cu -o hw4

#include <cmath>
#include <cstdint>

#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>

#include "whole_program.cuh"

namespace tensor_cores {

constexpr double kLog2E = 1.4426950408889634;
constexpr float kHeadroom = 12.0f;    // probabilities are kept 2^12 times too large: see "Range"

// ---------------------------------------------------------------------------------- splitting a float in two

// Two floats as a pair of halves (a in the low 16 bits), and what the halves leave over as another pair.
struct SplitPair {
    uint32_t high, low;
};

__device__ __forceinline__ uint32_t pack(float a, float b) {
    const __half2 pair = __floats2half2_rn(a, b);
    return *reinterpret_cast<const uint32_t*>(&pair);
}

__device__ __forceinline__ SplitPair split(float a, float b) {
    const __half2 high = __floats2half2_rn(a, b);
    const float2 rounded = __half22float2(high);
    return {*reinterpret_cast<const uint32_t*>(&high), pack(a - rounded.x, b - rounded.y)};
}

// The same for positive normal numbers, two instructions cheaper: cutting off the 13 bits that a half has no
// room for needs no conversion back.
__device__ __forceinline__ SplitPair split_positive(float a, float b) {
    const float cut_a = __uint_as_float(__float_as_uint(a) & 0xffffe000u);
    const float cut_b = __uint_as_float(__float_as_uint(b) & 0xffffe000u);
    return {pack(cut_a, cut_b), pack(a - cut_a, b - cut_b)};
}

__device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// A tile of Keys rows of K or V as the matrix instructions read it: two arrays (high, low halves) of
// [D / 8][Keys][8] halves. The 8 x 8 blocks that ldmatrix and wgmma fetch are 128 adjacent bytes.
template <int D, int Keys>
struct SplitTile {
    static constexpr int Part = D * Keys;             // halves in the high or low array
    static constexpr int Halves = 2 * Part;           // one of K, V
    static constexpr int Bytes = 2 * Halves * 2;      // K and V
    static constexpr int Chunks = Keys * D / 8;       // 8 floats of one row each
};

// Which 8 floats of a tile thread or turn `i` splits: neighbours take a patch of 8 rows by 4 chunks, that is whole
// sectors of global memory, and 128 adjacent bytes of the target for every 8 threads.
template <int D>
struct Place {
    int key, chunk;
    __device__ explicit Place(int i) : key(i / 32 / (D / 32) * 8 + i % 8), chunk(i / 32 % (D / 32) * 4 + i % 32 / 8) {}
};

template <int D, int Keys>
__device__ __forceinline__ void store_split(__half* tile, Place<D> place, float4 a, float4 b) {
    const SplitPair w = split(a.x, a.y), x = split(a.z, a.w), y = split(b.x, b.y), z = split(b.z, b.w);
    __half* const to = tile + (place.chunk * Keys + place.key) * 8;
    *reinterpret_cast<uint4*>(to) = make_uint4(w.high, x.high, y.high, z.high);
    *reinterpret_cast<uint4*>(to + D * Keys) = make_uint4(w.low, x.low, y.low, z.low);
}

// All K and V of all batches to split tiles: [batch][tile][K, V][high, low]. Grid: batches * n / Keys blocks.
template <int D, int Keys>
__global__ void __launch_bounds__(256) split_all(const float* __restrict__ input, __half* __restrict__ tiles, int n) {
    using T = SplitTile<D, Keys>;
    const size_t batch = blockIdx.x / (n / Keys), tile = blockIdx.x % (n / Keys);
    const float* const k = input + (3 * batch + 1) * n * D + tile * Keys * D;
    __half* const to = tiles + size_t(blockIdx.x) * 2 * T::Halves;
#pragma unroll
    for (int i = threadIdx.x; i < T::Chunks; i += 256) {
        const Place<D> place(i);
        const float4* const from = reinterpret_cast<const float4*>(k + place.key * D + place.chunk * 8);
        const float4* const v_from = from + size_t(n) * (D / 4);
        store_split<D, Keys>(to, place, from[0], from[1]);
        store_split<D, Keys>(to + T::Halves, place, v_from[0], v_from[1]);
    }
}

// ------------------------------------------------------------------------------------------------- attention

__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void load_blocks(uint32_t (&r)[4], const __half* from) {
    const uint32_t address = uint32_t(__cvta_generic_to_shared(from));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

__device__ __forceinline__ void load_blocks_transposed(uint32_t (&r)[4], const __half* from) {
    const uint32_t address = uint32_t(__cvta_generic_to_shared(from));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

constexpr int kWarps = 4, kWarpRows = 32, kRows = kWarps * kWarpRows, kKeys = 64;

template <int D, bool Raw>
constexpr size_t shared_bytes() {
    return (Raw ? 3 : 2) * SplitTile<D, kKeys>::Bytes;    // two copies in flight, and the split tile if Raw
}

// One block: 128 query rows of one batch, 32 a warp. Raw: K and V are split here, tile by tile, else they are
// read from `tiles`. `scale` is log2(e) / sqrt(D).
template <int D, bool Raw>
__global__ void __launch_bounds__(kWarps * 32, 2)
attention(const float* __restrict__ input, const __half* __restrict__ tiles, float* __restrict__ output, int n,
          float scale) {
#if defined(ATTENTION_PART) && defined(__CUDA_ARCH_FEAT_SM90_ALL)
    if constexpr (!Raw) return;    // hopper.cu has its own kernel for so many rows: nvcc is done in two thirds of the time
#endif
    using T = SplitTile<D, kKeys>;
    constexpr int Threads = kWarps * 32, Steps = D / 16, KeySteps = kKeys / 16;
    extern __shared__ __align__(128) __half shared[];

    const int row_tiles = n / kRows, key_tiles = n / kKeys;
    const size_t batch = blockIdx.x / row_tiles;
    const size_t matrix = size_t(n) * D;
    const float* const q = input + 3 * batch * matrix;
    const __half* const batch_tiles = tiles + batch * key_tiles * 2 * T::Halves;
    const int lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4 * 2;
    const int first_row = int(blockIdx.x % row_tiles) * kRows + threadIdx.x / 32 * kWarpRows;

    // Tile `tile` on its way to the stage after the next. Raw rows keep 16-byte chunk c in place c ^ row % 8, so that 8
    // threads that want the same chunk of 8 rows find it in different banks.
    __half* const split_tile = shared + 2 * 2 * T::Halves;
    const auto start_copy = [&](int tile) {
        __half* const stage = shared + tile % 2 * 2 * T::Halves;
        if constexpr (Raw) {
            float* const to = reinterpret_cast<float*>(stage);
            const float* const k = q + matrix + size_t(tile) * kKeys * D;
#pragma unroll 8
            for (int i = threadIdx.x; i < kKeys * D / 4; i += Threads) {
                const int place = (i ^ (i / (D / 4) % 8)) * 4;
                __pipeline_memcpy_async(to + place, k + 4 * i, 16);
                __pipeline_memcpy_async(to + T::Part + place, k + matrix + 4 * i, 16);
            }
        } else {
            const __half* const from = batch_tiles + size_t(tile) * 2 * T::Halves;
#pragma unroll 8
            for (int i = threadIdx.x; i < T::Bytes / 16; i += Threads)
                __pipeline_memcpy_async(stage + 8 * i, from + 8 * i, 16);
        }
    };
    start_copy(0);
    __pipeline_commit();
    if constexpr (Raw) {
        start_copy(1);    // n is at least 2 tiles
        __pipeline_commit();
    }

    // The warp's 32 rows of Q, as operands of mma: [16 rows][16 columns] blocks.
    uint32_t q_high[2][Steps][4], q_low[2][Steps][4];
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int step = 0; step < Steps; ++step)
#pragma unroll
            for (int part = 0; part < 4; ++part) {
                const int row = first_row + 16 * half + group + part % 2 * 8;
                const int column = 16 * step + pair + part / 2 * 8;
                const float2 x = *reinterpret_cast<const float2*>(q + size_t(row) * D + column);
                const SplitPair both = split(x.x, x.y);
                q_high[half][step][part] = both.high;
                q_low[half][step][part] = both.low;
            }

    float m[4], l[4], o[2][D / 8][4];
#pragma unroll
    for (int r = 0; r < 4; ++r) m[r] = -INFINITY, l[r] = 0.0f;
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int c = 0; c < D / 8; ++c) o[half][c][0] = o[half][c][1] = o[half][c][2] = o[half][c][3] = 0.0f;

    for (int tile = 0; tile < key_tiles; ++tile) {
        const __half* stage = shared + tile % 2 * 2 * T::Halves;
        if constexpr (Raw) {
            __pipeline_wait_prior(1);
            __syncthreads();    // the raw tile is there, and nobody still reads the previous split one
            const float* const raw = reinterpret_cast<const float*>(stage);
#pragma unroll 4
            for (int i = threadIdx.x; i < 2 * T::Chunks; i += Threads) {
                const Place<D> place(i % T::Chunks);
                const float4* const row =
                    reinterpret_cast<const float4*>(raw + i / T::Chunks * T::Part + place.key * D);
                store_split<D, kKeys>(split_tile + i / T::Chunks * T::Halves, place,
                                      row[(2 * place.chunk) ^ (place.key % 8)],
                                      row[(2 * place.chunk + 1) ^ (place.key % 8)]);
            }
            __syncthreads();
            if (tile + 2 < key_tiles) start_copy(tile + 2);
            __pipeline_commit();
            stage = split_tile;
        } else {
            __pipeline_wait_prior(0);
            __syncthreads();    // the tile is there, and nobody still reads the previous one
            if (tile + 1 < key_tiles) start_copy(tile + 1);
            __pipeline_commit();
        }

        // S = Q Kᵀ, 16 keys at a time: small products first, so that little is rounded at full size.
        float s[2][kKeys / 8][4];
#pragma unroll
        for (int keys = 0; keys < KeySteps; ++keys) {
#pragma unroll
            for (int half = 0; half < 2; ++half)
#pragma unroll
                for (int e = 0; e < 4; ++e) s[half][2 * keys][e] = s[half][2 * keys + 1][e] = 0.0f;
            const __half* const mine = stage + (lane / 8 % 2 * kKeys + 16 * keys + lane / 16 * 8 + lane % 8) * 8;
            uint32_t k_high[Steps][4];
#pragma unroll
            for (int step = 0; step < Steps; ++step) {
                uint32_t k_low[4];
                load_blocks(k_high[step], mine + 2 * step * kKeys * 8);
                load_blocks(k_low, mine + 2 * step * kKeys * 8 + T::Part);
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    mma(s[half][2 * keys], q_high[half][step], k_low[0], k_low[1]);
                    mma(s[half][2 * keys + 1], q_high[half][step], k_low[2], k_low[3]);
                }
            }
#pragma unroll
            for (int step = 0; step < Steps; ++step)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    mma(s[half][2 * keys], q_low[half][step], k_high[step][0], k_high[step][1]);
                    mma(s[half][2 * keys + 1], q_low[half][step], k_high[step][2], k_high[step][3]);
                }
#pragma unroll
            for (int step = 0; step < Steps; ++step)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    mma(s[half][2 * keys], q_high[half][step], k_high[step][0], k_high[step][1]);
                    mma(s[half][2 * keys + 1], q_high[half][step], k_high[step][2], k_high[step][3]);
                }
        }

        // m' = max(m, scale max s),  P = 2^(scale s - m'),  l' = 2^(m - m') l + sum P. Row r of the lane is
        // row group + 8 r of the warp; the 4 lanes of a group share it.
        float rescale[4];
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            float(&row)[kKeys / 8][4] = s[r / 2];
            const int e = r % 2 * 2;
            float top = fmaxf(row[0][e], row[0][e + 1]);
#pragma unroll
            for (int c = 1; c < kKeys / 8; ++c) top = fmaxf(top, fmaxf(row[c][e], row[c][e + 1]));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
            top = fmaxf(m[r], fmaf(top, scale, -kHeadroom));
            rescale[r] = exp2_fast(m[r] - top);
            m[r] = top;
            float sum = 0.0f;
#pragma unroll
            for (int c = 0; c < kKeys / 8; ++c) {
                row[c][e] = exp2_fast(fmaf(row[c][e], scale, -top));
                row[c][e + 1] = exp2_fast(fmaf(row[c][e + 1], scale, -top));
                sum += row[c][e] + row[c][e + 1];
            }
            l[r] = fmaf(l[r], rescale[r], sum);
        }

        // The layout in which mma leaves S is the one in which it wants P.
        uint32_t p_high[2][KeySteps][4], p_low[2][KeySteps][4];
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
            for (int keys = 0; keys < KeySteps; ++keys)
#pragma unroll
                for (int part = 0; part < 4; ++part) {
                    const float(&from)[4] = s[half][2 * keys + part / 2];
                    const SplitPair both = split_positive(from[part % 2 * 2], from[part % 2 * 2 + 1]);
                    p_high[half][keys][part] = both.high;
                    p_low[half][keys][part] = both.low;
                }

        // O' = 2^(m - m') O + P V, 16 columns at a time, each tile's product summed on its own first.
#pragma unroll
        for (int columns = 0; columns < Steps; ++columns) {
            float sum[2][2][4] = {};
            const __half* const mine =
                stage + T::Halves + ((2 * columns + lane / 16) * kKeys + lane / 8 % 2 * 8 + lane % 8) * 8;
            uint32_t v_high[KeySteps][4];
#pragma unroll
            for (int keys = 0; keys < KeySteps; ++keys) {
                uint32_t v_low[4];
                load_blocks_transposed(v_high[keys], mine + 16 * keys * 8);
                load_blocks_transposed(v_low, mine + 16 * keys * 8 + T::Part);
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    mma(sum[half][0], p_high[half][keys], v_low[0], v_low[1]);
                    mma(sum[half][1], p_high[half][keys], v_low[2], v_low[3]);
                }
            }
#pragma unroll
            for (int keys = 0; keys < KeySteps; ++keys)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    mma(sum[half][0], p_low[half][keys], v_high[keys][0], v_high[keys][1]);
                    mma(sum[half][1], p_low[half][keys], v_high[keys][2], v_high[keys][3]);
                }
#pragma unroll
            for (int keys = 0; keys < KeySteps; ++keys)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    mma(sum[half][0], p_high[half][keys], v_high[keys][0], v_high[keys][1]);
                    mma(sum[half][1], p_high[half][keys], v_high[keys][2], v_high[keys][3]);
                }
#pragma unroll
            for (int half = 0; half < 2; ++half)
#pragma unroll
                for (int c = 0; c < 2; ++c)
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        o[half][2 * columns + c][e] =
                            fmaf(o[half][2 * columns + c][e], rescale[2 * half + e / 2], sum[half][c][e]);
        }
    }

    float* const out = output + batch * matrix;
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        float sum = l[r];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        const float inverse = 1.0f / sum;
#pragma unroll
        for (int c = 0; c < D / 8; ++c) {
            const float(&from)[4] = o[r / 2][c];
            *reinterpret_cast<float2*>(out + size_t(first_row + group + 8 * r) * D + 8 * c + pair) =
                make_float2(from[r % 2 * 2] * inverse, from[r % 2 * 2 + 1] * inverse);
        }
    }
}

constexpr int kSplitFrom = 1024;    // rows from which splitting K and V once, beforehand, is worth its traffic

inline bool splits_first(int n) { return n >= kSplitFrom; }

inline size_t workspace_bytes(int batches, int n, int d) {
    return splits_first(n) ? size_t(batches) * n * d * 2 * sizeof(float) : 0;
}

template <int D, bool Raw>
cudaError_t launch_attention(const Problem& problem) {
    const cudaError_t error = cudaFuncSetAttribute(attention<D, Raw>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                   int(shared_bytes<D, Raw>()));
    if (error != cudaSuccess) return error;
    const unsigned blocks = unsigned(problem.batches) * unsigned(problem.rows / kRows);
    const float scale = float(kLog2E / std::sqrt(double(D)));
    attention<D, Raw><<<blocks, kWarps * 32, shared_bytes<D, Raw>(), problem.stream>>>(
        problem.input, static_cast<const __half*>(problem.workspace), problem.output, problem.rows, scale);
    return cudaGetLastError();
}

template <int D>
cudaError_t launch_dim(const Problem& problem) {
    if (!splits_first(problem.rows)) return launch_attention<D, true>(problem);
    const unsigned tiles = unsigned(problem.batches) * unsigned(problem.rows / kKeys);
    split_all<D, kKeys><<<tiles, 256, 0, problem.stream>>>(problem.input, static_cast<__half*>(problem.workspace),
                                                           problem.rows);
    const cudaError_t error = cudaGetLastError();
    return error != cudaSuccess ? error : launch_attention<D, false>(problem);
}

inline cudaError_t launch(const Problem& problem) {
    return problem.dim == 32 ? launch_dim<32>(problem) : launch_dim<64>(problem);
}

}    // namespace tensor_cores

#ifndef ATTENTION_PART    // hopper.cu includes this file for GPUs older than Hopper
ATTENTION_PROGRAM(tensor_cores)
#endif
