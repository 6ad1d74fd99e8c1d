// A warp that copies tiles to a ring, and others that use them: stages given back too early, too late or not at all.
#include "hopper.h"

constexpr int STAGES = 2, TILES = 5;

#define RING()                                                 \
    __shared__ __align__(128) int tile[STAGES][32];            \
    __shared__ Barrier full[STAGES], empty[STAGES];            \
    const int t = threadIdx.x % 32, producer = threadIdx.x < 32; \
    if (threadIdx.x == 0) {                                    \
        for (int s = 0; s < STAGES; s++) {                     \
            INIT(&full[s], 1);                                 \
            INIT(&empty[s], 32);                               \
        }                                                      \
        INIT_DONE();                                           \
    }                                                          \
    __syncthreads()

template <bool BUG> __global__ void does_not_wait(const int *in, int *out) {
    RING();
    if (producer) {
        for (int k = 0; k < TILES && t == 0; k++) {
            if (!BUG && k >= STAGES) WAIT(&empty[k % STAGES], (k / STAGES - 1) & 1);
            EXPECT(&full[k % STAGES], 128); // BUG producer_does_not_wait: memory
            LOAD(tile[k % STAGES], in + 32 * k, 128, &full[k % STAGES]);
        }
        return;
    }
    int sum = 0;
    for (int k = 0; k < TILES; k++) {
        WAIT(&full[k % STAGES], k / STAGES & 1);
        sum += tile[k % STAGES][t];
        ARRIVE(&empty[k % STAGES]);
    }
    out[t] = sum;
}
TWINS(producer_does_not_wait) {
    int *const out = filled<int>(32);
    does_not_wait<BUG><<<1, 64>>>(counting(32 * TILES), out);
    expect_all(out, 32, [](int i) { return TILES * (i + 1) + 32 * 10; });
}

template <bool BUG> __global__ void gives_back_early(const int *in, int *out) {
    RING();
    if (producer) {
        for (int k = 0; k < TILES && t == 0; k++) {
            if (k >= STAGES) WAIT(&empty[k % STAGES], (k / STAGES - 1) & 1);
            EXPECT(&full[k % STAGES], 128);
            LOAD(tile[k % STAGES], in + 32 * k, 128, &full[k % STAGES]); // BUG stage_given_back_before_it_is_read: race
        }
        return;
    }
    int sum = 0;
    for (int k = 0; k < TILES; k++) {
        WAIT(&full[k % STAGES], k / STAGES & 1);
        if (BUG) ARRIVE(&empty[k % STAGES]);
        sum += tile[k % STAGES][31 - t]; // BUG stage_given_back_before_it_is_read: race
        if (!BUG) ARRIVE(&empty[k % STAGES]);
    }
    out[t] = sum;
}
TWINS(stage_given_back_before_it_is_read) {
    int *const out = filled<int>(32);
    gives_back_early<BUG><<<1, 64>>>(counting(32 * TILES), out);
    expect_all(out, 32, [](int i) { return TILES * (32 - i) + 32 * 10; });
}

template <bool BUG> __global__ void keeps(const int *in, int *out) {
    RING();
    if (producer) {
        for (int k = 0; k < TILES && t == 0; k++) {
            if (k >= STAGES) WAIT(&empty[k % STAGES], (k / STAGES - 1) & 1); // BUG stage_given_back_by_one_thread: sync
            EXPECT(&full[k % STAGES], 128);
            LOAD(tile[k % STAGES], in + 32 * k, 128, &full[k % STAGES]);
        }
        return;
    }
    int sum = 0;
    for (int k = 0; k < TILES; k++) {
        WAIT(&full[k % STAGES], k / STAGES & 1);
        sum += tile[k % STAGES][t];
        if (!BUG || t == 0) ARRIVE(&empty[k % STAGES]);
    }
    out[t] = sum;
}
TWINS(stage_given_back_by_one_thread) {
    int *const out = filled<int>(32);
    keeps<BUG><<<1, 64>>>(counting(32 * TILES), out);
    expect_all(out, 32, [](int i) { return TILES * (i + 1) + 32 * 10; });
}

template <bool BUG> __global__ void every_tile(const int *in, int *out) {
    RING();
    if (producer) {
        for (int k = 0; k < TILES && t == 0; k++) {
            if (k >= STAGES) WAIT(&empty[k % STAGES], (k / STAGES - 1) & 1);
            EXPECT(&full[k % STAGES], 128);
            LOAD(tile[k % STAGES], in + 32 * k, 128, &full[k % STAGES]);
        }
        return;
    }
    int sum = 0;
    for (int k = 0; k < TILES; k++) {
        WAIT(&full[k % STAGES], (BUG ? k : k / STAGES) & 1); // BUG parity_of_the_tile_not_the_round: sync
        sum += tile[k % STAGES][t];
        ARRIVE(&empty[k % STAGES]);
    }
    out[t] = sum;
}
TWINS(parity_of_the_tile_not_the_round) {
    int *const out = filled<int>(32);
    every_tile<BUG><<<1, 64>>>(counting(32 * TILES), out);
    expect_all(out, 32, [](int i) { return TILES * (i + 1) + 32 * 10; });
}

// Four warps multiply, the fifth copies.
template <bool BUG> __global__ void product_unfinished(const unsigned *in, float *out) {
    __shared__ __align__(128) unsigned char tile[TILE_A + TILE_B];
    __shared__ Barrier full, empty;
    if (threadIdx.x == 0) {
        INIT(&full, 1);
        INIT(&empty, 128);
        INIT_DONE();
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        for (int k = 0; k < TILES && threadIdx.x == 128; k++) {
            if (k) WAIT(&empty, (k - 1) & 1);
            EXPECT(&full, sizeof tile);
            LOAD(tile, in + 576 * k, sizeof tile, &full); // BUG stage_given_back_before_its_product: race
        }
        return;
    }
    float d[4] = {};
#pragma unroll 1
    for (int k = 0; k < TILES; k++) {
        WAIT(&full, k & 1);
        PRODUCT_FENCE();
        ADD_PRODUCT(d, PLAIN(tile), PLAIN(tile + TILE_A)); // BUG stage_given_back_before_its_product: race
        PRODUCT_COMMIT();
        if (!BUG) PRODUCT_WAIT(0);
        ARRIVE(&empty);
    }
    PRODUCT_WAIT(0);
    for (int i = 0; i < 4; i++) out[4 * threadIdx.x + i] = d[i];
}
TWINS(stage_given_back_before_its_product) {
    float *const out = filled<float>(512);
    product_unfinished<BUG><<<1, 160>>>(powers(TILES, 576), out);
    expect_all(out, 512, [](int) { return 16 * (1 + 4 + 16 + 64 + 256); });
}
