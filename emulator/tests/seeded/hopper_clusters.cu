// Clusters whose blocks leave, read each other's shared memory or copy to it too early.
#include "hopper.h"

template <bool BUG> __global__ void __cluster_dims__(2, 1, 1) leaves(int *out) {
    __shared__ int mine[32];
    const unsigned t = threadIdx.x, rank = cluster_rank();
    int value = 0;
    mine[t] = (int)(100 * rank + t);
    CLUSTER_SYNC();
    if (rank == 1) READ_AT(value, &mine[t], 0); // BUG peer_left_before_it_was_read: memory
    out[32 * rank + t] = value;
    if (!BUG) CLUSTER_SYNC();
}
TWINS(peer_left_before_it_was_read) {
    int *const out = filled<int>(64);
    leaves<BUG><<<2, 32>>>(out);
    expect_all(out, 64, [](int i) { return i < 32 ? 0 : i - 32; });
}

template <bool BUG> __global__ void __cluster_dims__(2, 1, 1) too_early(int *out) {
    __shared__ int mine[32];
    const unsigned t = threadIdx.x, rank = cluster_rank();
    int value;
    mine[t] = (int)(100 * rank + t); // BUG peer_read_before_it_has_written: race
    if (!BUG) CLUSTER_SYNC();
    READ_AT(value, &mine[t], 1 - rank); // BUG peer_read_before_it_has_written: race
    out[32 * rank + t] = value;
    CLUSTER_SYNC();
}
TWINS(peer_read_before_it_has_written) {
    int *const out = filled<int>(64);
    too_early<BUG><<<2, 32>>>(out);
    expect_all(out, 64, [](int i) { return i < 32 ? 100 + i : i - 32; });
}

// Each block copies half of the tile to both.
template <bool BUG> __global__ void __cluster_dims__(2, 1, 1) halves(const int *in, int *out) {
    __shared__ __align__(128) int tile[64];
    __shared__ Barrier full;
    const unsigned t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        INIT(&full, 1);
        INIT_DONE();
    }
    CLUSTER_SYNC();
    if (t == 0) {
        EXPECT(&full, BUG ? 128 : 256); // BUG only_its_own_half_expected: sync
        MULTICAST(tile + 32 * rank, in + 32 * rank, 128, &full, 3); // BUG only_its_own_half_expected: sync
    }
    WAIT(&full, 0);
    out[64 * rank + t] = tile[t];
    CLUSTER_SYNC();
}
TWINS(only_its_own_half_expected) {
    int *const out = filled<int>(128);
    halves<BUG><<<2, 64>>>(counting(64), out);
    expect_all(out, 128, [](int i) { return i % 64 + 1; });
}

// Block 0 copies each tile to both blocks.
template <bool BUG> __global__ void __cluster_dims__(2, 1, 1) overtaken(const int *in, int *out) {
    __shared__ __align__(128) int tile[64];
    __shared__ Barrier full, used;
    const unsigned t = threadIdx.x, rank = cluster_rank();
    int sum = 0;
    if (t == 0) {
        INIT(&full, 1);
        INIT(&used, 128);
        INIT_DONE();
    }
    CLUSTER_SYNC();
#pragma unroll 1
    for (int k = 0; k < 3; k++) {
        if (t == 0) EXPECT(&full, 256);
        if (t == 0 && rank == 0) {
            if (!BUG && k) WAIT(&used, (k - 1) & 1);
            MULTICAST(tile, in + 64 * k, 256, &full, 3); // BUG multicast_over_a_tile_in_use: race
        }
        WAIT(&full, k & 1);
        sum += tile[63 - t]; // BUG multicast_over_a_tile_in_use: race
        ARRIVE_AT(&used, 0);
    }
    out[64 * rank + t] = sum;
    CLUSTER_SYNC();
}
TWINS(multicast_over_a_tile_in_use) {
    int *const out = filled<int>(128);
    overtaken<BUG><<<2, 64>>>(counting(192), out);
    expect_all(out, 128, [](int i) { return 3 * (64 - i % 64) + 192; });
}

// The last arrival comes when block 0 may have ended.
template <bool BUG> __global__ void __cluster_dims__(2, 1, 1) late_arrival(int *out) {
    __shared__ Barrier used;
    const unsigned t = threadIdx.x, rank = cluster_rank();
    if (t == 0) {
        INIT(&used, 32);
        INIT_DONE();
    }
    CLUSTER_SYNC();
    if (rank == 1) ARRIVE_AT(&used, 0); // BUG block_ends_without_waiting_for_arrivals: memory
    if (!BUG && rank == 0) WAIT(&used, 0);
    out[32 * rank + t] = 1;
}
TWINS(block_ends_without_waiting_for_arrivals) {
    int *const out = filled<int>(64);
    late_arrival<BUG><<<2, 32>>>(out);
    expect_all(out, 64, [](int) { return 1; });
}
