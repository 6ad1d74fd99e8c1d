// A block has ROWS queries of a head and goes through the keys KEYS at a time, both in shared memory as float32.
#pragma once

#include "common.cuh"

namespace honest {

constexpr int kThreads = 128, kShare = kThreads / ROWS, kColumns = 32;
static_assert(kShare <= 32 && 32 % kShare == 0, "threads of a row are in one warp");

// Columns come 32 at a time, for scores and for O.
__global__ void attention(Problem p) {
    __shared__ float q[ROWS][kColumns + 1], k[KEYS][kColumns + 1], s[ROWS][KEYS + 1], o[ROWS][kMostColumns + 1];
    const int d = p.h.dim, row = threadIdx.x / kShare, part = threadIdx.x % kShare, head_rows = p.h.queries;
    const int tiles = (head_rows + ROWS - 1) / ROWS, head = blockIdx.x / tiles, first_row = blockIdx.x % tiles * ROWS;
    const bool there = first_row + row < head_rows;
    const Query query(p, head * head_rows + min(first_row + row, head_rows - 1)), block(p, head * head_rows + first_row);
    const Query last(p, head * head_rows + min(first_row + ROWS, head_rows) - 1);
    for (int x = part; x < d; x += kShare) o[row][x] = 0.0f;
    float m = -INFINITY, l = 0.0f;
    for (int tile = min(block.first, last.first) / KEYS * KEYS; tile < max(block.end, last.end); tile += KEYS) {
        const int count = min(KEYS, p.h.keys - tile);
        __syncwarp();    // the threads of a row have read its weights
        for (int key = part; key < KEYS; key += kShare) s[row][key] = 0.0f;
        for (int begin = 0; begin < d; begin += kColumns) {
            const int columns = min(kColumns, d - begin);
            __syncthreads();
            for (int x = part; x < columns; x += kShare) q[row][x] = load(p, query.q + begin + x);
            for (int i = threadIdx.x; i < count * columns; i += kThreads)
                k[i / columns][i % columns] = load(p, block.k + (tile + i / columns) * p.layout.k.row + begin + i % columns);
            __syncthreads();
            for (int key = part; key < count; key += kShare)
                for (int x = 0; x < columns; ++x) s[row][key] += q[row][x] * k[key][x];
        }
        float top = m;
        for (int key = part; key < KEYS; key += kShare) {
            const bool seen = there && key < count && tile + key >= query.first && tile + key < query.end;
            s[row][key] = seen ? s[row][key] * p.h.scale : -INFINITY;
            top = fmaxf(top, s[row][key]);
        }
        for (int step = 1; step < kShare; step *= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
        const float rescale = top == -INFINITY ? 1.0f : expf(m - top);
        float sum = 0.0f;
        for (int key = part; key < KEYS; key += kShare) sum += s[row][key] = top == -INFINITY ? 0.0f : expf(s[row][key] - top);
        for (int step = 1; step < kShare; step *= 2) sum += __shfl_xor_sync(~0u, sum, step);
        m = top;
        l = l * rescale + sum;
        for (int begin = 0; begin < d; begin += kColumns) {
            const int columns = min(kColumns, d - begin);
            __syncthreads();
            for (int i = threadIdx.x; i < count * columns; i += kThreads)
                k[i / columns][i % columns] = load(p, block.v + (tile + i / columns) * p.layout.v.row + begin + i % columns);
            __syncthreads();
            for (int x = part; x < columns; x += kShare) {
                float value = o[row][begin + x] * rescale;
                for (int key = 0; key < count; ++key) value += s[row][key] * k[key][x];
                o[row][begin + x] = value;
            }
        }
    }
    if (there)
        for (int x = part; x < d; x += kShare) store(p, query.o + x, l > 0.0f ? o[row][x] / l : 0.0f);
}

inline void launch_kernels(const Problem& p) {
    const int tiles = (p.h.queries + ROWS - 1) / ROWS;
    attention<<<p.h.batches * p.h.query_heads * tiles, kThreads>>>(p);
}

}    // namespace honest

HONEST_PROGRAM(launch_kernels, 256)
