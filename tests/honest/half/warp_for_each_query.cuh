// One warp for each query. Its lanes share the columns, or with LANES_SHARE_KEYS the keys: then each lane has a softmax of
// its own, and they are merged as a tree at the end.
#pragma once

#include "common.cuh"

namespace honest {

constexpr int kWarps = 4, kMine = kMostColumns / 32;

__device__ inline float sum_of_warp(float x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

#ifndef LANES_SHARE_KEYS

__global__ void attention(Problem p) {
    const int number = blockIdx.x * kWarps + threadIdx.x / 32, lane = threadIdx.x % 32, d = p.h.dim;
    if (number >= p.queries_of_all()) return;
    const Query query(p, number);
    float q[kMine], o[kMine], m = -INFINITY, l = 0.0f;
    for (int i = 0; i < kMine; ++i) {
        q[i] = lane + 32 * i < d ? load(p, query.q + lane + 32 * i) : 0.0f;
        o[i] = 0.0f;
    }
    for (int key = query.first; key < query.end; ++key) {
        float s = 0.0f;
        for (int i = 0; lane + 32 * i < d; ++i) s += q[i] * load(p, query.k + key * p.layout.k.row + lane + 32 * i);
        s = sum_of_warp(s) * p.h.scale;
        const float top = fmaxf(m, s), rescale = expf(m - top), weight = expf(s - top);
        m = top;
        l = l * rescale + weight;
        for (int i = 0; lane + 32 * i < d; ++i)
            o[i] = o[i] * rescale + weight * load(p, query.v + key * p.layout.v.row + lane + 32 * i);
    }
    for (int i = 0; lane + 32 * i < d; ++i) store(p, query.o + lane + 32 * i, l > 0.0f ? o[i] / l : 0.0f);
}

#else

__global__ void attention(Problem p) {
    const int number = blockIdx.x * kWarps + threadIdx.x / 32, lane = threadIdx.x % 32, d = p.h.dim;
    if (number >= p.queries_of_all()) return;
    const Query query(p, number);
    float o[kMostColumns], m = -INFINITY, l = 0.0f;
    for (int x = 0; x < d; ++x) o[x] = 0.0f;
    for (int key = query.first + lane; key < query.end; key += 32) {
        float s = 0.0f;
        for (int x = 0; x < d; ++x) s += load(p, query.q + x) * load(p, query.k + key * p.layout.k.row + x);
        s *= p.h.scale;
        const float top = fmaxf(m, s), rescale = expf(m - top), weight = expf(s - top);
        m = top;
        l = l * rescale + weight;
        for (int x = 0; x < d; ++x) o[x] = o[x] * rescale + weight * load(p, query.v + key * p.layout.v.row + x);
    }
    for (int step = 1; step < 32; step *= 2) {
        const float other_m = __shfl_xor_sync(~0u, m, step), other_l = __shfl_xor_sync(~0u, l, step);
        const float top = fmaxf(m, other_m);
        const float mine = m == -INFINITY ? 0.0f : expf(m - top), others = other_m == -INFINITY ? 0.0f : expf(other_m - top);
        for (int x = 0; x < d; ++x) o[x] = o[x] * mine + __shfl_xor_sync(~0u, o[x], step) * others;
        l = l * mine + other_l * others;
        m = top;
    }
    for (int x = lane; x < d; x += 32) store(p, query.o + x, l > 0.0f ? o[x] / l : 0.0f);
}

#endif

inline void launch_kernels(const Problem& p) {
    const int queries = p.queries_of_all();
    attention<<<(queries + kWarps - 1) / kWarps, 32 * kWarps>>>(p);
}

}    // namespace honest

HONEST_PROGRAM(launch_kernels, 256)
