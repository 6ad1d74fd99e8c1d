// Products by wmma: a warp has 16 queries and takes 16 keys at a time; O stays in shared memory. ELEMENT is what the tensor
// cores multiply: the input's half type, or with TF32 float32 of which they read 19 bits.
#pragma once

#include <mma.h>

#include "common.cuh"

namespace honest {

namespace wmma = nvcuda::wmma;

#ifdef TF32
constexpr int kStep = 8;
template <class Half>
struct Numbers {
    using Stored = float;
    using Read = wmma::precision::tf32;
    __device__ static float from(float x) { return wmma::__float_to_tf32(x); }
};
#else
constexpr int kStep = 16;
template <class Half>
struct Numbers {
    using Stored = Half;
    using Read = Half;
    __device__ static Half from(float x) { return Half(x); }
};
#endif

template <class Half>
__global__ void attention(Problem p) {
    using N = Numbers<Half>;
    using Stored = typename N::Stored;
    using Read = typename N::Read;
    extern __shared__ __align__(128) char shared[];
    const int d = p.h.dim, pitch = (d + 15) / 16 * 16 + 8, lane = threadIdx.x;
    float *const o = reinterpret_cast<float*>(shared), *const s = o + 16 * pitch;
    Stored *const q = reinterpret_cast<Stored*>(s + 16 * 24), *const k = q + 16 * pitch, *const v = k + 16 * pitch;
    Stored* const weights = v + 16 * pitch;
    const int tiles = (p.h.queries + 15) / 16, head = blockIdx.x / tiles, first_row = blockIdx.x % tiles * 16;
    const int rows = min(16, p.h.queries - first_row);
    const Query query(p, head * p.h.queries + first_row + min(lane % 16, rows - 1));
    int begin = query.first, end = query.end;
    for (int step = 1; step < 16; step *= 2) {
        begin = min(begin, __shfl_xor_sync(~0u, begin, step));
        end = max(end, __shfl_xor_sync(~0u, end, step));
    }
    const auto fill = [&](Stored* to, size_t from, size_t row, int count) {
        for (int i = lane; i < 16 * pitch; i += 32)
            to[i] = N::from(i / pitch < count && i % pitch < d ? load(p, from + i / pitch * row + i % pitch) : 0.0f);
    };
    fill(q, Query(p, head * p.h.queries + first_row).q, p.layout.q.row, rows);
    for (int i = lane; i < 16 * pitch; i += 32) o[i] = 0.0f;
    float m = -INFINITY, l = 0.0f;    // of row `lane`, if it is below 16
    for (int tile = begin / 16 * 16; tile < end; tile += 16) {
        __syncwarp();
        fill(k, query.k + tile * p.layout.k.row, p.layout.k.row, min(16, p.h.keys - tile));
        fill(v, query.v + tile * p.layout.v.row, p.layout.v.row, min(16, p.h.keys - tile));
        __syncwarp();
        wmma::fragment<wmma::accumulator, 16, 16, kStep, float> sums;
        wmma::fragment<wmma::matrix_a, 16, 16, kStep, Read, wmma::row_major> left;
        wmma::fill_fragment(sums, 0.0f);
        for (int x = 0; x < (d + 15) / 16 * 16; x += kStep) {
            wmma::fragment<wmma::matrix_b, 16, 16, kStep, Read, wmma::col_major> right;
            wmma::load_matrix_sync(left, q + x, pitch);
            wmma::load_matrix_sync(right, k + x, pitch);
            wmma::mma_sync(sums, left, right, sums);
        }
        wmma::store_matrix_sync(s, sums, 24, wmma::mem_row_major);
        __syncwarp();
        if (lane < 16) {
            float top = m, total = 0.0f;
            for (int j = 0; j < 16; ++j) {
                float& score = s[lane * 24 + j];
                score = tile + j >= query.first && tile + j < query.end ? score * p.h.scale : -INFINITY;
                top = fmaxf(top, score);
            }
            for (int j = 0; j < 16; ++j) {
                const float weight = top == -INFINITY ? 0.0f : expf(s[lane * 24 + j] - top);
                total += weight;
                weights[lane * 24 + j] = N::from(weight);
            }
            const float rescale = top == -INFINITY ? 1.0f : expf(m - top);
            l = l * rescale + total;
            m = top;
            for (int x = 0; x < d; ++x) o[lane * pitch + x] *= rescale;
        }
        __syncwarp();
        for (int x = 0; x < (d + 15) / 16 * 16; x += 16) {
            wmma::load_matrix_sync(sums, o + x, pitch, wmma::mem_row_major);
            for (int key = 0; key < 16; key += kStep) {
                wmma::fragment<wmma::matrix_b, 16, 16, kStep, Read, wmma::row_major> right;
                wmma::load_matrix_sync(left, weights + key, 24);
                wmma::load_matrix_sync(right, v + key * pitch + x, pitch);
                wmma::mma_sync(sums, left, right, sums);
            }
            wmma::store_matrix_sync(o + x, sums, pitch, wmma::mem_row_major);
        }
    }
    __syncwarp();
    if (lane < rows)
        for (int x = 0; x < d; ++x) store(p, query.o + x, l > 0.0f ? o[lane * pitch + x] / l : 0.0f);
}

inline void launch_kernels(const Problem& p) {
    const int tiles = (p.h.queries + 15) / 16, pitch = (p.h.dim + 15) / 16 * 16 + 8;
    const int bytes = 4 * (16 * pitch + 16 * 24) + (kStep == 8 ? 4 : 2) * (3 * 16 * pitch + 16 * 24);
    const auto kernel = p.h.type == half_program::kBfloat16 ? attention<__nv_bfloat16> : attention<__half>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<p.h.batches * p.h.query_heads * tiles, 32, bytes>>>(p);
}

}    // namespace honest

HONEST_PROGRAM(launch_kernels, 256)
