// Attention forward in half precision, step 2: tensor cores with mma.sync, and softmax that never leaves registers.
//
// Theory of operation
//
//   This is FlashAttention-2's way (Dao 2023). A block of four warps makes 64 rows of O of one head, 16 rows a warp, and
//   walks over the keys in tiles. For each tile
//
//       S = Q Kᵀ        m' = max(m, max S)        P = exp(S - m')
//       l = exp(m - m') l + sum P                 O = exp(m - m') O + P V
//
//   and at the end O / l. Neither S nor P is ever in memory: of a product of 16 x 8, each lane holds 2 columns of 2
//   rows, and that is just what it has to hold of a left operand, so P is S rounded to half, in place. A row is shared
//   by four lanes, so maximum and sum take two shuffles.
//
//   Precision. Products are exact and summed in float32; S, m, l, P before the product and O stay in float32. Rounded
//   are P, once, and O, once, at the end. P is at most 1 and is divided by l only afterwards, so that rows with thousands
//   of equal scores do not end up with probabilities too small for a half.
//
//   Scale. exp(scale S - m) = 2^(scale log2(e) S - m'), one multiply-add and one instruction of the special-function unit.
//
//   Copies. cp.async brings K and V to shared memory past the registers: V while S is computed, the next K while P V
//   is. Each row there has 16 bytes more than it needs, so that ldmatrix, which fetches 8 rows of 16 bytes at a time,
//   meets 8 different sets of banks. Rows behind the end of a tensor and columns behind d arrive as zeros, which change
//   no product: head sizes between two of the sizes below take the next one.
//
//   Masks. Query i stands at key i + Nk - Nq. Tiles that no row of the block sees are not visited; in tiles that a
//   border runs through, hidden scores become -inf. A row that has seen nothing has m = -1e30, finite on purpose: the
//   difference of two infinities is NaN, and 2^(-inf + 1e30) is the 0 that it should be.
//
//   float8 is widened to float16 before anything else, which is exact. P would not survive being float8.
//
//   Cost. 4 Nq Nk d operations, of which Hopper's tensor cores do mma.sync at some 60 % of their rate; and while a warp
//   computes exponentials it starts no products. hopper.cu is about that.
//
// Needs sm_80 or newer. Build: nvcc -O3 -std=c++17 -arch=native mma.cu -o half

#ifndef HALF_MMA
#define HALF_MMA

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "half_program.cuh"

namespace mma {

using half_program::Header;
using half_program::Strides;

constexpr float kNothing = -1e30f;    // the maximum of a row that has seen no key yet
constexpr int kWarps = 4, kRows = 16 * kWarps, kThreads = 32 * kWarps;

// -------------------------------------------------------------------------------------------------- instructions

__device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Two floats as a pair of Halfs, a in the low 16 bits.
template <class Half>
__device__ __forceinline__ uint32_t pack(float a, float b) {
    uint32_t pair;
    if constexpr (std::is_same_v<Half, __half>)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(b), "f"(a));
    else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(b), "f"(a));
    return pair;
}

// d (16 x 8) += a (16 x 16) b (16 x 8)
template <class Half>
__device__ __forceinline__ void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#define MMA(TYPE)                                                                                                  \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE                                            \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                            \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                  \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
    if constexpr (std::is_same_v<Half, __half>)
        MMA("f16");
    else
        MMA("bf16");
#undef MMA
}

// Four blocks of 8 x 8 halves; lane i gives the address of row i % 8 of block i / 8.
template <bool Transposed>
__device__ __forceinline__ void load_blocks(uint32_t (&r)[4], const void* from) {
    const uint32_t address = uint32_t(__cvta_generic_to_shared(from));
    if constexpr (Transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(address));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(address));
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int Pending>
__device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

// ------------------------------------------------------------------------------------------------------- tiles

template <int D>
struct Tile {
    static constexpr int Keys = D <= 128 ? 64 : 32;    // as many as registers and shared memory of small chips allow
    static constexpr int Pitch = D + 8;                // halves from row to row: see "Copies"
    static constexpr int SharedBytes = (kRows + 2 * Keys) * Pitch * 2;

    // Starts copying rows first_row.. of a matrix of `rows` rows and `dim` columns; zeros where there are none.
    template <int Rows, class Half>
    static __device__ __forceinline__ void start_copy(Half* tile, const Half* matrix, size_t row_stride, int first_row,
                                                      int rows, int dim) {
        constexpr int Pieces = D / 8;    // of 16 bytes in a row
        static_assert(Rows * Pieces % kThreads == 0, "each thread copies as much");
#pragma unroll
        for (int i = threadIdx.x; i < Rows * Pieces; i += kThreads) {
            const int row = i / Pieces, column = i % Pieces * 8;
            const bool inside = first_row + row < rows && column < dim;
            const Half* const from = matrix + (inside ? (first_row + row) * row_stride + column : 0);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                             uint32_t(__cvta_generic_to_shared(tile + row * Pitch + column))),
                         "l"(from), "r"(inside ? 16 : 0)
                         : "memory");
        }
    }
};

// Where a lane points load_blocks: 16 rows of a tile as a left operand; 16 rows as a right operand, by rows (of which the
// product takes the transpose) or by columns.
template <int D, class Half>
__device__ __forceinline__ const Half* left_operand(const Half* tile) {
    return tile + threadIdx.x % 16 * Tile<D>::Pitch + threadIdx.x / 16 % 2 * 8;
}
template <int D, class Half>
__device__ __forceinline__ const Half* right_operand_by_rows(const Half* tile) {
    return tile + (threadIdx.x / 16 % 2 * 8 + threadIdx.x % 8) * Tile<D>::Pitch + threadIdx.x / 8 % 2 * 8;
}
template <int D, class Half>
__device__ __forceinline__ const Half* right_operand_by_columns(const Half* tile) {
    return left_operand<D>(tile);
}

// s (16 x Rows) = a (16 x D) bᵀ, b a tile of Rows rows.
template <int D, int Rows, class Half>
__device__ __forceinline__ void multiply_by_rows(float (&s)[Rows / 8][4], const Half* a_lane, const Half* b_lane) {
#pragma unroll
    for (int n = 0; n < Rows / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) s[n][i] = 0.0f;
#pragma unroll
    for (int step = 0; step < D / 16; ++step) {
        uint32_t a[4];
        load_blocks<false>(a, a_lane + step * 16);
#pragma unroll
        for (int n = 0; n < Rows / 16; ++n) {
            uint32_t b[4];
            load_blocks<false>(b, b_lane + n * 16 * Tile<D>::Pitch + step * 16);
            multiply<Half>(s[2 * n], a, b[0], b[1]);
            multiply<Half>(s[2 * n + 1], a, b[2], b[3]);
        }
    }
}

// o (16 x D) += a b, b a tile of Rows rows; a (16 x Rows) as multiply_by_rows leaves it, rounded here.
template <int D, int Rows, class Half>
__device__ __forceinline__ void add_by_columns(float (&o)[D / 8][4], const float (&a)[Rows / 8][4], const Half* b_lane) {
#pragma unroll
    for (int step = 0; step < Rows / 16; ++step) {
        const float(&left)[4] = a[2 * step], (&right)[4] = a[2 * step + 1];
        const uint32_t halves[4] = {pack<Half>(left[0], left[1]), pack<Half>(left[2], left[3]),
                                    pack<Half>(right[0], right[1]), pack<Half>(right[2], right[3])};
#pragma unroll
        for (int n = 0; n < D / 16; ++n) {
            uint32_t b[4];
            load_blocks<true>(b, b_lane + step * 16 * Tile<D>::Pitch + n * 16);
            multiply<Half>(o[2 * n], halves, b[0], b[1]);
            multiply<Half>(o[2 * n + 1], halves, b[2], b[3]);
        }
    }
}

// --------------------------------------------------------------------------------------------------- attention

template <class Half>
struct Parameters {
    const Half *q, *k, *v;
    Half* o;
    Strides q_strides, k_strides, v_strides, o_strides;
    int queries, keys, dim, heads_per_key_head, causal, window;
    float scale;          // times log2 e
    float* statistics;    // m + log2 l of each row [B, Hq, Nq], -inf where nothing is seen; or null
};

template <int D, class Half>
__global__ void __launch_bounds__(kThreads) attention(Parameters<Half> p) {
    constexpr int Keys = Tile<D>::Keys, Pitch = Tile<D>::Pitch;
    extern __shared__ __align__(16) char shared[];
    Half* const q_tile = reinterpret_cast<Half*>(shared);
    Half *const k_tile = q_tile + kRows * Pitch, *const v_tile = k_tile + Keys * Pitch;

    // Blocks start in the order of their numbers: the last rows, which see most under a causal mask, come first.
    const int first_row = (gridDim.x - 1 - blockIdx.x) * kRows, head = blockIdx.y, batch = blockIdx.z;
    const int key_head = head / p.heads_per_key_head, offset = p.keys - p.queries;
    const Half* const q = p.q + batch * p.q_strides.batch + head * p.q_strides.head;
    const Half* const k = p.k + batch * p.k_strides.batch + key_head * p.k_strides.head;
    const Half* const v = p.v + batch * p.v_strides.batch + key_head * p.v_strides.head;

    // Tiles that any row sees.
    const int last_row = min(first_row + kRows, p.queries) - 1;
    const int keys_end = p.causal ? min(p.keys, last_row + offset + 1) : p.keys;
    const int keys_begin = p.window >= 0 ? max(0, first_row + offset - p.window) : 0;
    const int first_tile = keys_begin / Keys, tiles_end = keys_end > keys_begin ? (keys_end + Keys - 1) / Keys : first_tile;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = first_row + warp * 16 + lane / 4;    // and 8 further on
    float o[D / 8][4] = {}, m[2] = {kNothing, kNothing}, l[2] = {};

    const Half* const q_lane = left_operand<D>(q_tile + warp * 16 * Pitch);
    const Half* const k_lane = right_operand_by_rows<D>(k_tile);
    const Half* const v_lane = right_operand_by_columns<D>(v_tile);

    Tile<D>::template start_copy<kRows>(q_tile, q, p.q_strides.row, first_row, p.queries, p.dim);
    if (tiles_end > first_tile)
        Tile<D>::template start_copy<Keys>(k_tile, k, p.k_strides.row, (tiles_end - 1) * Keys, p.keys, p.dim);
    commit_copies();

    for (int tile = tiles_end - 1; tile >= first_tile; --tile) {
        const int first_key = tile * Keys;
        wait_copies<0>();
        __syncthreads();    // K is there, and nobody reads the last V
        Tile<D>::template start_copy<Keys>(v_tile, v, p.v_strides.row, first_key, p.keys, p.dim);
        commit_copies();

        float s[Keys / 8][4];
        multiply_by_rows<D, Keys>(s, q_lane, k_lane);
        wait_copies<0>();
        __syncthreads();    // V is there, and nobody reads K
        if (tile > first_tile) {
            Tile<D>::template start_copy<Keys>(k_tile, k, p.k_strides.row, first_key - Keys, p.keys, p.dim);
            commit_copies();
        }

        const bool border = first_key + Keys > p.keys || (p.causal && first_key + Keys - 1 > first_row + offset) ||
                            (p.window >= 0 && first_key < last_row + offset - p.window);
        if (border) {
#pragma unroll
            for (int n = 0; n < Keys / 8; ++n)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int key = first_key + n * 8 + lane % 4 * 2 + i % 2, at = row + i / 2 * 8 + offset;
                    const bool hidden =
                        key >= p.keys || (p.causal && key > at) || (p.window >= 0 && key < at - p.window);
                    if (hidden) s[n][i] = -INFINITY;
                }
        }

        float rescale[2];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float top = s[0][2 * r];
#pragma unroll
            for (int n = 0; n < Keys / 8; ++n) top = fmaxf(top, fmaxf(s[n][2 * r], s[n][2 * r + 1]));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
            top = fmaxf(m[r], top * p.scale);
            rescale[r] = exp2_fast(m[r] - top);
            m[r] = top;
            l[r] *= rescale[r];
#pragma unroll
            for (int n = 0; n < Keys / 8; ++n)
#pragma unroll
                for (int i = 2 * r; i < 2 * r + 2; ++i) {
                    s[n][i] = exp2_fast(fmaf(s[n][i], p.scale, -top));
                    l[r] += s[n][i];
                }
        }
#pragma unroll
        for (int n = 0; n < D / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) o[n][i] *= rescale[i / 2];

        add_by_columns<D, Keys>(o, s, v_lane);
    }
    wait_copies<0>();    // of Q, where no tile was visited: a block must not end before its copies

#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const int my_row = row + 8 * r;
        float total = l[r];
        total += __shfl_xor_sync(0xffffffffu, total, 1);
        total += __shfl_xor_sync(0xffffffffu, total, 2);
        if (my_row >= p.queries) continue;
        const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
        if (p.statistics && lane % 4 == 0)
            p.statistics[(size_t(batch) * gridDim.y + head) * p.queries + my_row] =
                total > 0.0f ? m[r] + log2f(total) : -INFINITY;
        Half* const out = p.o + batch * p.o_strides.batch + head * p.o_strides.head + my_row * p.o_strides.row;
#pragma unroll
        for (int n = 0; n < D / 8; ++n)
            if (n * 8 < p.dim)
                *reinterpret_cast<uint32_t*>(out + n * 8 + lane % 4 * 2) =
                    pack<Half>(o[n][2 * r] * inverse, o[n][2 * r + 1] * inverse);
    }
}

// ---------------------------------------------------------------------------------------------------- launching

// float8 -> float16, which holds every value of both kinds.
template <class Float8>
__global__ void widen(const Float8* from, __half* to, size_t count) {
    const size_t stride = size_t(gridDim.x) * blockDim.x;
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) to[i] = __half(from[i]);
}

inline void start_widening(const Header& h, const void* input, __half* wide, cudaStream_t stream) {
    const size_t count = h.input_elements();
    const int blocks = int(std::min(size_t(2048), (count + 255) / 256));
    if (h.type == half_program::kE4m3)
        widen<<<blocks, 256, 0, stream>>>(static_cast<const __nv_fp8_e4m3*>(input), wide, count);
    else
        widen<<<blocks, 256, 0, stream>>>(static_cast<const __nv_fp8_e5m2*>(input), wide, count);
}

template <int D, class Half>
cudaError_t launch_as(const Header& h, const void* input, void* output, float* statistics, cudaStream_t stream) {
    const half_program::Layout layout(h);
    const Half* const in = static_cast<const Half*>(input);
    const Parameters<Half> p{in + layout.q.start,
                             in + layout.k.start,
                             in + layout.v.start,
                             static_cast<Half*>(output) + layout.o.start,
                             layout.q,
                             layout.k,
                             layout.v,
                             layout.o,
                             h.queries,
                             h.keys,
                             h.dim,
                             h.query_heads / h.key_heads,
                             h.causal,
                             std::min(h.window, h.queries + h.keys),
                             h.scale * float(M_LOG2E),
                             statistics};
    const cudaError_t error =
        cudaFuncSetAttribute(attention<D, Half>, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile<D>::SharedBytes);
    if (error != cudaSuccess) return error;
    const dim3 grid((h.queries + kRows - 1) / kRows, h.query_heads, h.batches);
    attention<D, Half><<<grid, kThreads, Tile<D>::SharedBytes, stream>>>(p);
    return cudaGetLastError();
}

template <class Half>
cudaError_t launch_type(const Header& h, const void* input, void* output, float* statistics, cudaStream_t stream) {
    if (h.dim <= 32) return launch_as<32, Half>(h, input, output, statistics, stream);
    if (h.dim <= 64) return launch_as<64, Half>(h, input, output, statistics, stream);
    if (h.dim <= 96) return launch_as<96, Half>(h, input, output, statistics, stream);
    if (h.dim <= 128) return launch_as<128, Half>(h, input, output, statistics, stream);
    if (h.dim <= 192) return launch_as<192, Half>(h, input, output, statistics, stream);
    return launch_as<256, Half>(h, input, output, statistics, stream);
}

inline size_t workspace_bytes(const Header& h) { return h.is_float8() ? 2 * h.input_elements() : 16; }

inline cudaError_t launch(const Header& h, const void* input, void* output, void* workspace, cudaStream_t stream) {
    if (h.is_float8()) {
        start_widening(h, input, static_cast<__half*>(workspace), stream);
        input = workspace;
    }
    if (h.type == half_program::kBfloat16) return launch_type<__nv_bfloat16>(h, input, output, nullptr, stream);
    return launch_type<__half>(h, input, output, nullptr, stream);
}

}    // namespace mma

#ifndef MMA_PART
HALF_PROGRAM(mma, false)
#endif

#endif    // HALF_MMA
