// Bulk copies that are not waited for, counted wrongly, or that read what ordinary stores wrote without a fence.
#include "hopper.h"

template <bool BUG> __global__ void no_wait(const int *in, int *out) {
    __shared__ __align__(128) int tile[64];
    __shared__ Barrier full;
    const int t = threadIdx.x;
    if (t == 0) {
        INIT(&full, 1);
        INIT_DONE();
        EXPECT(&full, 256);
        LOAD(tile, in, 256, &full); // BUG tile_read_before_its_copy: race
    }
    __syncthreads();
    if (!BUG) WAIT(&full, 0);
    out[t] = tile[t]; // BUG tile_read_before_its_copy: race
    if (BUG) WAIT(&full, 0);
}
TWINS(tile_read_before_its_copy) {
    int *const out = filled<int>(64);
    no_wait<BUG><<<1, 64>>>(counting(64), out);
    expect_all(out, 64, [](int i) { return i + 1; });
}

template <bool BUG> __global__ void one_warp(const int *in, int *out) {
    __shared__ __align__(128) int tile[64];
    __shared__ Barrier full;
    const int t = threadIdx.x;
    if (t == 0) {
        INIT(&full, 1);
        INIT_DONE();
        EXPECT(&full, 256);
        LOAD(tile, in, 256, &full); // BUG only_one_warp_waits: race
    }
    __syncthreads();
    if (!BUG || t < 32) WAIT(&full, 0);
    out[t] = tile[t]; // BUG only_one_warp_waits: race
}
TWINS(only_one_warp_waits) {
    int *const out = filled<int>(64);
    one_warp<BUG><<<1, 64>>>(counting(64), out);
    expect_all(out, 64, [](int i) { return i + 1; });
}

template <bool BUG> __global__ void many_bytes(const int *in, int *out) {
    __shared__ __align__(128) int tile[64];
    __shared__ Barrier full;
    const int t = threadIdx.x;
    if (t == 0) {
        INIT(&full, 1);
        INIT_DONE();
        EXPECT(&full, BUG ? 512 : 256); // BUG more_bytes_expected_than_copied: sync
        LOAD(tile, in, 256, &full);
    }
    __syncthreads();
    WAIT(&full, 0); // BUG more_bytes_expected_than_copied: sync
    out[t] = tile[t];
}
TWINS(more_bytes_expected_than_copied) {
    int *const out = filled<int>(64);
    many_bytes<BUG><<<1, 64>>>(counting(64), out);
    expect_all(out, 64, [](int i) { return i + 1; });
}

template <bool BUG> __global__ void few_bytes(const int *in, int *out) {
    __shared__ __align__(128) int tile[128];
    __shared__ Barrier full;
    const int t = threadIdx.x;
    if (t == 0) {
        INIT(&full, 1);
        INIT_DONE();
        EXPECT(&full, BUG ? 256 : 512); // BUG bytes_of_one_copy_expected: sync
        for (int i = 0; i < 2; i++)
            LOAD(tile + 64 * i, in + 64 * i, 256, &full); // BUG bytes_of_one_copy_expected: sync
    }
    __syncthreads();
    WAIT(&full, 0);
    out[t] = tile[t] + tile[64 + t];
}
TWINS(bytes_of_one_copy_expected) {
    int *const out = filled<int>(64);
    few_bytes<BUG><<<1, 64>>>(counting(128), out);
    expect_all(out, 64, [](int i) { return 2 * i + 66; });
}

// One buffer for all tiles; each phase has the other parity.
template <bool BUG> __global__ void same_parity(const int *in, int *out) {
    __shared__ __align__(128) int tile[64];
    __shared__ Barrier full;
    const int t = threadIdx.x;
    int sum = 0;
    if (t == 0) {
        INIT(&full, 1);
        INIT_DONE();
    }
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        if (t == 0) {
            EXPECT(&full, 256);
            LOAD(tile, in + 64 * k, 256, &full); // BUG parity_waited_for_twice: race
        }
        WAIT(&full, BUG ? 0 : k); // BUG parity_waited_for_twice: race
        sum += tile[t]; // BUG parity_waited_for_twice: race
        __syncthreads();
    }
    if (BUG) WAIT(&full, 1);
    out[t] = sum;
}
TWINS(parity_waited_for_twice) {
    int *const out = filled<int>(64);
    same_parity<BUG><<<1, 64>>>(counting(128), out);
    expect_all(out, 64, [](int i) { return 2 * i + 66; });
}

template <bool BUG> __global__ void first_parity(const int *in, int *out) {
    __shared__ __align__(128) int tile[64];
    __shared__ Barrier full;
    const int t = threadIdx.x;
    if (t == 0) {
        INIT(&full, 1);
        INIT_DONE();
        EXPECT(&full, 256);
        LOAD(tile, in, 256, &full); // BUG first_wait_for_parity_one: race
    }
    __syncthreads();
    WAIT(&full, BUG ? 1 : 0); // BUG first_wait_for_parity_one: race
    out[t] = tile[t]; // BUG first_wait_for_parity_one: race
    if (BUG) WAIT(&full, 0);
}
TWINS(first_wait_for_parity_one) {
    int *const out = filled<int>(64);
    first_parity<BUG><<<1, 32>>>(counting(64), out);
    expect_all(out, 32, [](int i) { return i + 1; });
}

template <bool BUG> __global__ void arrivals(const int *in, int *out) {
    __shared__ __align__(128) int tile[64];
    __shared__ Barrier full;
    const int t = threadIdx.x;
    if (t == 0) {
        INIT(&full, 1);
        INIT_DONE();
    }
    __syncthreads();
    if (BUG || t == 0) EXPECT(&full, 256); // BUG every_thread_arrives_at_a_barrier_for_one: memory
    if (t == 0) LOAD(tile, in, 256, &full);
    WAIT(&full, 0);
    out[t] = tile[t];
}
TWINS(every_thread_arrives_at_a_barrier_for_one) {
    int *const out = filled<int>(64);
    arrivals<BUG><<<1, 64>>>(counting(64), out);
    expect_all(out, 64, [](int i) { return i + 1; });
}

template <bool BUG> __global__ void no_barrier(const int *in, int *out) {
    __shared__ __align__(128) int tile[64];
    __shared__ Barrier full;
    const int t = threadIdx.x;
    int sum = 0;
    if (t == 0) {
        INIT(&full, 1);
        INIT_DONE();
    }
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        if (t == 0) {
            EXPECT(&full, 256);
            LOAD(tile, in + 64 * k, 256, &full); // BUG tile_copied_over_while_read: race
        }
        WAIT(&full, k);
        __syncthreads();
        sum += tile[63 - t]; // BUG tile_copied_over_while_read: race
        if (!BUG) __syncthreads();
    }
    out[t] = sum;
}
TWINS(tile_copied_over_while_read) {
    int *const out = filled<int>(64);
    no_barrier<BUG><<<1, 64>>>(counting(128), out);
    expect_all(out, 64, [](int i) { return 192 - 2 * i; });
}

template <bool BUG> __global__ void unfenced(int *out) {
    __shared__ __align__(128) int tile[64];
    const int t = threadIdx.x;
    tile[t] = t; // BUG store_without_proxy_fence: race
    if (!BUG) PROXY_FENCE();
    __syncthreads();
    if (t == 0) {
        STORE(out, tile, 256); // BUG store_without_proxy_fence: race
        STORE_DONE();
    }
}
TWINS(store_without_proxy_fence) {
    int *const out = filled<int>(64);
    unfenced<BUG><<<1, 64>>>(out);
    expect_all(out, 64, [](int i) { return i; });
}

template <bool BUG> __global__ void fenced_by_one(int *out) {
    __shared__ __align__(128) int tile[64];
    const int t = threadIdx.x;
    tile[t] = t; // BUG proxy_fence_by_one_thread: race
    if (!BUG || t == 0) PROXY_FENCE();
    __syncthreads();
    if (t == 0) {
        STORE(out, tile, 256); // BUG proxy_fence_by_one_thread: race
        STORE_DONE();
    }
}
TWINS(proxy_fence_by_one_thread) {
    int *const out = filled<int>(64);
    fenced_by_one<BUG><<<1, 64>>>(out);
    expect_all(out, 64, [](int i) { return i; });
}

template <bool BUG> __global__ void overwritten(int *out) {
    __shared__ __align__(128) int tile[64];
    const int t = threadIdx.x;
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        tile[t] = 64 * k + t; // BUG source_overwritten_before_it_is_read: race
        PROXY_FENCE();
        __syncthreads();
        if (t == 0) {
            STORE(out + 64 * k, tile, 256); // BUG source_overwritten_before_it_is_read: race
            if (!BUG) STORE_READ();
        }
        __syncthreads();
    }
    if (t == 0) STORE_DONE();
}
TWINS(source_overwritten_before_it_is_read) {
    int *const out = filled<int>(128);
    overwritten<BUG><<<1, 64>>>(out);
    expect_all(out, 128, [](int i) { return i; });
}

template <bool BUG> __global__ void left(int *out) {
    __shared__ __align__(128) int tile[64];
    const int t = threadIdx.x;
    tile[t] = t;
    PROXY_FENCE();
    __syncthreads();
    if (t == 0) {
        STORE(out, tile, 256); // BUG block_ends_before_its_store_has_read: sync
        if (!BUG) STORE_READ();
    }
}
TWINS(block_ends_before_its_store_has_read) {
    int *const out = filled<int>(64);
    left<BUG><<<1, 64>>>(out);
    expect_all(out, 64, [](int i) { return i; });
}

template <bool BUG> __global__ void block_left(const int *in, int *out) {
    __shared__ __align__(128) int tile[64];
    __shared__ Barrier full;
    const int t = threadIdx.x;
    if (t == 0) {
        INIT(&full, 1);
        INIT_DONE();
        EXPECT(&full, 256);
        LOAD(tile, in, 256, &full); // BUG block_ends_before_its_copy_arrives: sync
    }
    __syncthreads();
    if (BUG && in[0]) return;
    WAIT(&full, 0);
    out[t] = tile[t];
}
TWINS(block_ends_before_its_copy_arrives) {
    int *const out = filled<int>(64);
    block_left<BUG><<<1, 64>>>(counting(64), out);
    if (!BUG) expect_all(out, 64, [](int i) { return i + 1; });
}

template <bool BUG> __global__ void init_unfenced(const int *in, int *out) {
    __shared__ __align__(128) int tile[64];
    __shared__ Barrier full;
    const int t = threadIdx.x;
    if (t == 0) {
        INIT(&full, 1); // BUG barrier_object_without_init_fence: race
        if (!BUG) INIT_DONE();
        EXPECT(&full, 256);
        LOAD(tile, in, 256, &full); // BUG barrier_object_without_init_fence: race
    }
    __syncthreads();
    WAIT(&full, 0);
    out[t] = tile[t];
}
TWINS(barrier_object_without_init_fence) {
    int *const out = filled<int>(64);
    init_unfenced<BUG><<<1, 64>>>(counting(64), out);
    expect_all(out, 64, [](int i) { return i + 1; });
}

// ---- kernels that overlap, registers that move

__global__ void writes(int *x) {
    TRIGGER();
    x[threadIdx.x] = (int)threadIdx.x; // BUG dependent_kernel_does_not_wait: race
}
template <bool BUG> __global__ void reads(const int *x, int *out) {
    if (!BUG) WAIT_FOR_KERNEL();
    out[threadIdx.x] = x[threadIdx.x]; // BUG dependent_kernel_does_not_wait: race
}
TWINS(dependent_kernel_does_not_wait) {
    int *const x = filled<int>(64, 1), *const out = filled<int>(64);
    writes<<<1, 64>>>(x);
    launch_dependent(reads<BUG>, (const int *)x, out);
    expect_all(out, 64, [](int i) { return i; });
}

template <bool BUG> __global__ void __launch_bounds__(384, 1) takes_registers(int *out) {
    if (threadIdx.x < 128) REGISTERS(dec, BUG ? 40 : 24);
    else REGISTERS(inc, 240); // BUG registers_that_nobody_gives_back: sync
    __syncthreads();
    out[threadIdx.x] = (int)threadIdx.x;
}
TWINS(registers_that_nobody_gives_back) {
    int *const out = filled<int>(384);
    takes_registers<BUG><<<1, 384>>>(out);
    expect_all(out, 384, [](int i) { return i; });
}
