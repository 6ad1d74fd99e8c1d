// One thread for each query, in many ways that are all right. What can be defined before:
//
//     NUMBER             the type of all sums and scores
//     EXP(x)             e^x
//     BASE_TWO           scores are multiplied with log2(e), and EXP is 2^x
//     KEY(n, i)          which of n keys comes at turn i
//     DOT(a, b, d)       a dot product of two arrays
//     ADD(sum, rest, x)  adds x to a sum that has a rest
//     TILE               keys that are merged into the softmax at once
//     GROWTH             how much the maximum has to grow before sums are rescaled
//     SCORE(p, s)        what becomes of a score; WEIGHT(p, w): of a weight before it is multiplied with V
//     SCALED_QUERIES     Q is scaled, not S
//     MAXIMUM_FIRST      the maximum is known before the first exponential; NORMALISED: and so is the sum
//     SPLITS             threads that share the keys of a query; their results are combined by a second kernel
#pragma once

#include "common.cuh"

#ifndef NUMBER
#define NUMBER float
#endif
#ifndef EXP
#ifdef BASE_TWO
#define EXP(x) exp2f(x)
#else
#define EXP(x) exp(x)
#endif
#endif
#ifndef KEY
#define KEY(n, i) (i)
#endif
#ifndef DOT
#define DOT(a, b, d) honest::dot(a, b, d)
#endif
#ifndef ADD
#define ADD(sum, rest, x) (sum) += (x)
#endif
#ifndef TILE
#define TILE 1
#endif
#ifndef GROWTH
#define GROWTH 0
#endif
#ifndef SCORE
#define SCORE(p, s) (s)
#endif
#ifndef WEIGHT
#define WEIGHT(p, w) (w)
#endif
#ifndef SPLITS
#define SPLITS 1
#endif

namespace honest {

// Kahan's sum: `rest` is what the sum could not hold.
__device__ inline void add_compensated(NUMBER& sum, NUMBER& rest, NUMBER x) {
    const NUMBER y = x - rest, all = sum + y;
    rest = (all - sum) - y;
    sum = all;
}

__device__ inline NUMBER dot(const NUMBER* a, const NUMBER* b, int d) {
    NUMBER sum = 0, rest = 0;
    (void)rest;
    for (int x = 0; x < d; ++x) ADD(sum, rest, a[x] * b[x]);
    return sum;
}

// Neighbours first, then neighbouring sums, as a tree.
__device__ inline NUMBER tree_dot(const NUMBER* a, const NUMBER* b, int d) {
    NUMBER sums[kMostColumns];
    for (int x = 0; x < d; ++x) sums[x] = a[x] * b[x];
    for (; d > 1; d = (d + 1) / 2)
        for (int x = 0; x < d / 2 + d % 2; ++x) sums[x] = 2 * x + 1 < d ? sums[2 * x] + sums[2 * x + 1] : sums[2 * x];
    return sums[0];
}

constexpr int kThreads = 64;

struct Softmax {
    NUMBER m = -INFINITY, l = 0, l_rest = 0, o[kMostColumns], o_rest[kMostColumns];
};

__global__ void attention(Problem p) {
    const int number = (blockIdx.x * kThreads + threadIdx.x) / SPLITS, split = threadIdx.x % SPLITS, d = p.h.dim;
    if (number >= p.queries_of_all()) return;
    const Query query(p, number);
    const int all = query.end - query.first, share = (all + SPLITS - 1) / SPLITS;
    const int first = query.first + min(all, split * share), count = min(share, query.end - first);

    NUMBER scale = p.h.scale, q[kMostColumns], row[kMostColumns];
#ifdef BASE_TWO
    scale *= NUMBER(M_LOG2E);
#endif
    Softmax my;
    for (int x = 0; x < d; ++x) {
        q[x] = load(p, query.q + x);
        my.o[x] = my.o_rest[x] = 0;
    }
#ifdef SCALED_QUERIES
    for (int x = 0; x < d; ++x) q[x] *= scale;
    scale = 1;
#endif
    const auto score = [&](int i) -> NUMBER {
        const size_t key = query.k + (first + KEY(count, i)) * p.layout.k.row;
        for (int x = 0; x < d; ++x) row[x] = load(p, key + x);
        return SCORE(p, SCORE(p, DOT(q, row, d)) * scale);
    };
#ifdef MAXIMUM_FIRST
    for (int i = 0; i < count; ++i) my.m = fmax(my.m, score(i));
#endif
#ifdef NORMALISED
    NUMBER total = 0;
    for (int i = 0; i < count; ++i) total += EXP(score(i) - my.m);
#else
    constexpr NUMBER total = 1;
#endif
    for (int tile = 0; tile < count; tile += TILE) {
        NUMBER s[TILE], top = my.m;
        const int here = min(TILE, count - tile);
        for (int t = 0; t < here; ++t) top = fmax(top, s[t] = score(tile + t));
        if (top > my.m + NUMBER(GROWTH)) {
            const NUMBER rescale = EXP(my.m - top);
            my.m = top;
            my.l *= rescale, my.l_rest *= rescale;
            for (int x = 0; x < d; ++x) my.o[x] *= rescale, my.o_rest[x] *= rescale;
        }
        for (int t = 0; t < here; ++t) {
            const NUMBER exponential = EXP(s[t] - my.m), weight = WEIGHT(p, exponential / total);
            ADD(my.l, my.l_rest, exponential / total);
            const size_t value = query.v + (first + KEY(count, tile + t)) * p.layout.v.row;
            for (int x = 0; x < d; ++x) ADD(my.o[x], my.o_rest[x], weight * NUMBER(load(p, value + x)));
        }
    }
#ifdef NORMALISED
    if (my.l > 0) my.l = 1;
#endif
    if (SPLITS > 1) {
        float* const to = p.workspace + (size_t(number) * SPLITS + split) * (d + 2);
        to[0] = float(my.m), to[1] = float(my.l);
        for (int x = 0; x < d; ++x) to[2 + x] = float(my.o[x]);
    } else {
        for (int x = 0; x < d; ++x) store(p, query.o + x, my.l > 0 ? float(my.o[x] / my.l) : 0.0f);
    }
}

__global__ void combine(Problem p) {
    const int number = blockIdx.x * kThreads + threadIdx.x, d = p.h.dim;
    if (number >= p.queries_of_all()) return;
    const float* const from = p.workspace + size_t(number) * SPLITS * (d + 2);
    float m = -INFINITY, l = 0.0f;
    for (int split = 0; split < SPLITS; ++split) m = fmaxf(m, from[split * (d + 2)]);
    for (int split = 0; split < SPLITS; ++split)
        if (const float part = from[split * (d + 2) + 1]; part > 0.0f) l += part * float(EXP(from[split * (d + 2)] - m));
    const Query query(p, number);
    for (int x = 0; x < d; ++x) {
        float o = 0.0f;
        for (int split = 0; split < SPLITS; ++split)
            if (from[split * (d + 2) + 1] > 0.0f) o += from[split * (d + 2) + 2 + x] * float(EXP(from[split * (d + 2)] - m));
        store(p, query.o + x, l > 0.0f ? o / l : 0.0f);
    }
}

inline void launch_kernels(const Problem& p) {
    const int queries = p.queries_of_all();
    attention<<<(queries * SPLITS + kThreads - 1) / kThreads, kThreads>>>(p);
    if (SPLITS > 1) combine<<<(queries + kThreads - 1) / kThreads, kThreads>>>(p);
}

}    // namespace honest

HONEST_PROGRAM(launch_kernels, SPLITS > 1 ? (h.query_elements() / h.dim) * SPLITS * (h.dim + 2) * sizeof(float) : 256)
