// Products of warpgroups whose operands or sums are touched too early, or that lack a fence. Every sum of the correct
// programs is 16 times the product of the two operands' values, which are powers of two.
#include "hopper.h"

#include <cuda.h>

#define FOUR(i) for (int i = 0; i < 4; i++)
#define PUT(out, d) FOUR(i_) out[4 * threadIdx.x + i_] = d[i_]

template <bool BUG> __global__ void not_arrived(const unsigned *in, float *out) {
    __shared__ __align__(128) unsigned char tile[TILE_A + TILE_B];
    __shared__ Barrier full;
    float d[4] = {};
    if (threadIdx.x == 0) {
        INIT(&full, 1);
        INIT_DONE();
        EXPECT(&full, sizeof tile);
        LOAD(tile, in, sizeof tile, &full); // BUG product_before_its_copy: race
    }
    __syncthreads();
    if (!BUG) WAIT(&full, 0);
    PRODUCT_FENCE();
    ADD_PRODUCT(d, PLAIN(tile), PLAIN(tile + TILE_A)); // BUG product_before_its_copy: race
    PRODUCT_COMMIT();
    PRODUCT_WAIT(0);
    PUT(out, d);
    if (BUG) WAIT(&full, 0);
}
TWINS(product_before_its_copy) {
    float *const out = filled<float>(512);
    not_arrived<BUG><<<1, 128>>>(powers(1, 576), out);
    expect_all(out, 512, [](int) { return 16; });
}

template <bool BUG> __global__ void copied_over(const unsigned *in, float *out) {
    __shared__ __align__(128) unsigned char tile[TILE_A + TILE_B];
    __shared__ Barrier full;
    float d[4] = {};
    if (threadIdx.x == 0) {
        INIT(&full, 1);
        INIT_DONE();
    }
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        if (threadIdx.x == 0) {
            EXPECT(&full, sizeof tile);
            LOAD(tile, in + 576 * k, sizeof tile, &full); // BUG operand_copied_over: race
        }
        WAIT(&full, k);
        PRODUCT_FENCE();
        ADD_PRODUCT(d, PLAIN(tile), PLAIN(tile + TILE_A)); // BUG operand_copied_over: race
        PRODUCT_COMMIT();
        if (!BUG) PRODUCT_WAIT(0);
        __syncthreads();
    }
    PRODUCT_WAIT(0);
    PUT(out, d);
}
TWINS(operand_copied_over) {
    float *const out = filled<float>(512);
    copied_over<BUG><<<1, 128>>>(powers(2, 576), out);
    expect_all(out, 512, [](int) { return 16 + 64; });
}

__device__ void fill(unsigned char *tile, unsigned value) {
    for (int i = (int)threadIdx.x; i < (TILE_A + TILE_B) / 4; i += 128) ((unsigned *)tile)[i] = value;
}

template <bool BUG> __global__ void stored_over(float *out) {
    __shared__ __align__(128) unsigned char tile[TILE_A + TILE_B];
    float d[4] = {};
    fill(tile, 0x3c003c00u);
    PROXY_FENCE();
    __syncthreads();
    PRODUCT_FENCE();
    ADD_PRODUCT(d, PLAIN(tile), PLAIN(tile + TILE_A)); // BUG operand_stored_over: race
    PRODUCT_COMMIT();
    if (!BUG) PRODUCT_WAIT(0);
    __syncthreads();
    ((unsigned *)tile)[threadIdx.x] = 0; // BUG operand_stored_over: race
    if (BUG) PRODUCT_WAIT(0);
    PUT(out, d);
}
TWINS(operand_stored_over) {
    float *const out = filled<float>(512);
    stored_over<BUG><<<1, 128>>>(out);
    expect_all(out, 512, [](int) { return 16; });
}

template <bool BUG> __global__ void unfenced(float *out) {
    __shared__ __align__(128) unsigned char tile[TILE_A + TILE_B];
    float d[4] = {};
    for (int i = (int)threadIdx.x; i < (TILE_A + TILE_B) / 4; i += 128)
        ((unsigned *)tile)[i] = 0x3c003c00u; // BUG product_without_proxy_fence: race
    if (!BUG) PROXY_FENCE();
    __syncthreads();
    PRODUCT_FENCE();
    ADD_PRODUCT(d, PLAIN(tile), PLAIN(tile + TILE_A)); // BUG product_without_proxy_fence: race
    PRODUCT_COMMIT();
    PRODUCT_WAIT(0);
    PUT(out, d);
}
TWINS(product_without_proxy_fence) {
    float *const out = filled<float>(512);
    unfenced<BUG><<<1, 128>>>(out);
    expect_all(out, 512, [](int) { return 16; });
}

template <bool BUG> __global__ void no_barrier(float *out) {
    __shared__ __align__(128) unsigned char tile[TILE_A + TILE_B];
    float d[4] = {};
    for (int i = (int)threadIdx.x; i < (TILE_A + TILE_B) / 4; i += 128)
        ((unsigned *)tile)[i] = 0x3c003c00u; // BUG product_without_barrier: race
    PROXY_FENCE();
    if (!BUG) __syncthreads();
    PRODUCT_FENCE();
    ADD_PRODUCT(d, PLAIN(tile), PLAIN(tile + TILE_A)); // BUG product_without_barrier: race
    PRODUCT_COMMIT();
    PRODUCT_WAIT(0);
    PUT(out, d);
}
TWINS(product_without_barrier) {
    float *const out = filled<float>(512);
    no_barrier<BUG><<<1, 128>>>(out);
    expect_all(out, 512, [](int) { return 16; });
}

template <bool BUG> __global__ void sums_early(float *out) {
    __shared__ __align__(128) unsigned char tile[TILE_A + TILE_B];
    float d[4] = {};
    fill(tile, 0x3c003c00u);
    PROXY_FENCE();
    __syncthreads();
    PRODUCT_FENCE();
    ADD_PRODUCT(d, PLAIN(tile), PLAIN(tile + TILE_A)); // BUG sums_read_before_the_wait: sync
    PRODUCT_COMMIT();
    if (!BUG) PRODUCT_WAIT(0);
    PUT(out, d); // BUG sums_read_before_the_wait: sync
    if (BUG) PRODUCT_WAIT(0);
}
TWINS(sums_read_before_the_wait) {
    float *const out = filled<float>(512);
    sums_early<BUG><<<1, 128>>>(out);
    expect_all(out, 512, [](int) { return 16; });
}

template <bool BUG> __global__ void too_few(float *out) {
    __shared__ __align__(128) unsigned char tile[TILE_A + TILE_B];
    float first[4] = {}, second[4] = {};
    fill(tile, 0x3c003c00u);
    PROXY_FENCE();
    __syncthreads();
    PRODUCT_FENCE();
    ADD_PRODUCT(first, PLAIN(tile), PLAIN(tile + TILE_A));
    PRODUCT_COMMIT();
    ADD_PRODUCT(second, PLAIN(tile), PLAIN(tile + TILE_A)); // BUG wait_for_all_but_one_group: sync
    PRODUCT_COMMIT();
    PRODUCT_WAIT(BUG ? 1 : 0);
    PUT(out, first);
    out += 512;
    PUT(out, second); // BUG wait_for_all_but_one_group: sync
}
TWINS(wait_for_all_but_one_group) {
    float *const out = filled<float>(1024);
    too_few<BUG><<<1, 128>>>(out);
    expect_all(out, 1024, [](int) { return 16; });
}

template <bool BUG> __global__ void uncommitted(float *out) {
    __shared__ __align__(128) unsigned char tile[TILE_A + TILE_B];
    float d[4] = {};
    fill(tile, 0x3c003c00u);
    PROXY_FENCE();
    __syncthreads();
    PRODUCT_FENCE();
    ADD_PRODUCT(d, PLAIN(tile), PLAIN(tile + TILE_A)); // BUG product_not_committed: sync
    if (!BUG) PRODUCT_COMMIT();
    PRODUCT_WAIT(0);
    PUT(out, d); // BUG product_not_committed: sync
}
TWINS(product_not_committed) {
    float *const out = filled<float>(512);
    uncommitted<BUG><<<1, 128>>>(out);
    expect_all(out, 512, [](int) { return 16; });
}

template <bool BUG> __global__ void no_fence(float *out) {
    __shared__ __align__(128) unsigned char tile[TILE_A + TILE_B];
    float d[4] = {};
    fill(tile, 0x3c003c00u);
    PROXY_FENCE();
    __syncthreads();
    if (!BUG) PRODUCT_FENCE();
    ADD_PRODUCT(d, PLAIN(tile), PLAIN(tile + TILE_A)); // BUG product_without_fence: sync
    PRODUCT_COMMIT();
    PRODUCT_WAIT(0);
    PUT(out, d);
}
TWINS(product_without_fence) {
    float *const out = filled<float>(512);
    no_fence<BUG><<<1, 128>>>(out);
    expect_all(out, 512, [](int) { return 16; });
}

template <bool BUG> __global__ void rescaled(float *out, float scale) {
    __shared__ __align__(128) unsigned char tile[TILE_A + TILE_B];
    float d[4] = {};
    fill(tile, 0x3c003c00u);
    PROXY_FENCE();
    __syncthreads();
    PRODUCT_FENCE();
    ADD_PRODUCT(d, PLAIN(tile), PLAIN(tile + TILE_A));
    PRODUCT_COMMIT();
    PRODUCT_WAIT(0);
    FOUR(i) d[i] *= scale; // BUG sums_rescaled_without_fence: sync
    if (!BUG) PRODUCT_FENCE();
    ADD_PRODUCT(d, PLAIN(tile), PLAIN(tile + TILE_A)); // BUG sums_rescaled_without_fence: sync
    PRODUCT_COMMIT();
    PRODUCT_WAIT(0);
    PUT(out, d);
}
TWINS(sums_rescaled_without_fence) {
    float *const out = filled<float>(512);
    rescaled<BUG><<<1, 128>>>(out, 0.5f);
    expect_all(out, 512, [](int) { return 24; });
}

template <bool BUG> __global__ void fragment(const unsigned *in, float *out, int tiles) {
    __shared__ __align__(128) unsigned char tile[TILE_A + TILE_B];
    float d[4] = {};
    unsigned a[4];
    fill(tile, 0x3c003c00u);
    PROXY_FENCE();
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < tiles; k++) {
        FOUR(i) a[i] = in[4 * k + i]; // BUG fragment_changed_before_the_wait: sync
        PRODUCT_FENCE();
        ADD_PRODUCT_OF_REGISTERS(d, a, PLAIN(tile)); // BUG fragment_changed_before_the_wait: sync
        PRODUCT_COMMIT();
        if (!BUG) PRODUCT_WAIT(0);
    }
    PRODUCT_WAIT(0);
    PUT(out, d);
}
TWINS(fragment_changed_before_the_wait) {
    float *const out = filled<float>(512);
    fragment<BUG><<<1, 128>>>(powers(2, 4), out, 2);
    expect_all(out, 512, [](int) { return 16 + 32; });
}

template <bool BUG> __global__ void three_warps(float *out) {
    __shared__ __align__(128) unsigned char tile[TILE_A + TILE_B];
    float d[4] = {};
    fill(tile, 0x3c003c00u);
    PROXY_FENCE();
    __syncthreads();
    if (BUG && threadIdx.x >= 96) return;
    PRODUCT_FENCE();
    ADD_PRODUCT(d, PLAIN(tile), PLAIN(tile + TILE_A)); // BUG product_of_three_warps: memory
    PRODUCT_COMMIT();
    PRODUCT_WAIT(0);
    PUT(out, d);
}
TWINS(product_of_three_warps) {
    float *const out = filled<float>(512);
    three_warps<BUG><<<1, 128>>>(out);
    expect_all(out, 512, [](int) { return 16; });
}

// Rows of 64 halves with the 128-byte swizzle, by a tensor map; row r of A is r % 8 in column 17 and 0 elsewhere, B is 1.
#define SWIZZLED(p, mode) ((unsigned long long)(AT(p) >> 4) | 1ull << 16 | 64ull << 32 | (unsigned long long)(mode) << 62)
template <bool BUG> __global__ void other_swizzle(const __grid_constant__ CUtensorMap map, float *out) {
    __shared__ __align__(1024) unsigned char tile[72 * 128];
    __shared__ Barrier full;
    float d[4] = {};
    if (threadIdx.x == 0) {
        INIT(&full, 1);
        INIT_DONE();
        EXPECT(&full, sizeof tile);
        LOAD_BOX(tile, &map, 0, 0, &full); // BUG swizzle_of_copy_and_descriptor_differ: memory
    }
    __syncthreads();
    WAIT(&full, 0);
    PRODUCT_FENCE();
    for (int k = 0; k < 4; k++)
        ADD_PRODUCT(d, SWIZZLED(tile + 32 * k, BUG ? 2 : 1), SWIZZLED(tile + 64 * 128 + 32 * k, BUG ? 2 : 1)); // BUG swizzle_of_copy_and_descriptor_differ: memory
    PRODUCT_COMMIT();
    PRODUCT_WAIT(0);
    PUT(out, d);
}
TWINS(swizzle_of_copy_and_descriptor_differ) {
    std::vector<unsigned short> values(72 * 64, 0);
    const unsigned short digits[8] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};
    for (int r = 0; r < 64; r++) values[(size_t)(64 * r + 17)] = digits[r % 8];
    for (int i = 64 * 64; i < 72 * 64; i++) values[(size_t)i] = 0x3c00;
    unsigned short *const in = fresh<unsigned short>(values.size());
    cudaMemcpy(in, values.data(), 2 * values.size(), cudaMemcpyHostToDevice);
    void *f = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &found);
    CUtensorMap map;
    const cuuint64_t size[2] = {64, 72}, stride[1] = {128};
    const cuuint32_t box[2] = {64, 72}, ones[2] = {1, 1};
    ((decltype(&cuTensorMapEncodeTiled))f)(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, in, size, stride, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                           CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    float *const out = filled<float>(512);
    other_swizzle<BUG><<<1, 128>>>(map, out);
    expect_all(out, 512, [](int i) { return (i / 4 / 4) % 8; }); // thread t has rows t / 4 % 8 and 8 more, of its warp's 16
}
