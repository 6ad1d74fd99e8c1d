// Barriers that not all threads reach, warp functions with wrong masks, loops that never end.
#include "seeded.h"

__global__ void branch(int *out) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    if (threadIdx.x % 2 == 0) {
        __syncthreads(); // BUG barrier_in_a_branch: sync
        out[threadIdx.x] = s[63 - threadIdx.x];
    }
    out[threadIdx.x] += 1;
}
PROGRAM(barrier_in_a_branch) { branch<<<1, 64>>>(filled<int>(64)); }

__global__ void uneven_loop(const int *in, int *out) {
    __shared__ int s;
#pragma unroll 1
    for (int k = 0; k <= in[threadIdx.x]; k++) {
        if (threadIdx.x == 0) s = k;
        __syncthreads(); // BUG barrier_in_an_uneven_loop: sync
    }
    out[threadIdx.x] = s;
}
PROGRAM(barrier_in_an_uneven_loop) {
    std::vector<int> host(64);
    for (int i = 0; i < 64; i++) host[i] = i % 3;
    int *in = fresh<int>(64);
    cudaMemcpy(in, host.data(), 256, cudaMemcpyHostToDevice);
    uneven_loop<<<1, 64>>>(in, filled<int>(64));
}

__global__ void too_many_expected(int *out) {
    if (threadIdx.x < 32) asm volatile("bar.sync 1, 96;"); // BUG barrier_for_absent_threads: sync
    else __syncthreads();
    out[threadIdx.x] = 1;
}
PROGRAM(barrier_for_absent_threads) { too_many_expected<<<1, 64>>>(filled<int>(64)); }

__global__ void half_a_warp(int *out) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;
    __syncwarp();
    if (threadIdx.x < 16) {
        __syncwarp(); // BUG syncwarp_in_a_branch: sync
        out[threadIdx.x] = s[15 - threadIdx.x];
    }
    out[threadIdx.x] += 1;
}
PROGRAM(syncwarp_in_a_branch) { half_a_warp<<<1, 32>>>(filled<int>(32)); }

__global__ void lower_half_only(int *out) {
    const unsigned lower = __ballot_sync(0xffffffffu, threadIdx.x < 16);
    if (threadIdx.x < 16) {
        __syncwarp(lower);
        out[threadIdx.x] = 1;
    }
    __syncwarp(lower); // BUG syncwarp_mask_without_the_caller: sync
    out[threadIdx.x] += 1;
}
PROGRAM(syncwarp_mask_without_the_caller) { lower_half_only<<<1, 32>>>(filled<int>(32)); }

__global__ void partial_sum(const int *in, int *out, int n) {
    int v = in[threadIdx.x];
    if (threadIdx.x < n)
        v += __shfl_down_sync(0xffffffffu, v, 8); // BUG shuffle_in_a_branch: sync
    out[threadIdx.x] = v;
}
PROGRAM(shuffle_in_a_branch) { partial_sum<<<1, 32>>>(filled<int>(32), filled<int>(32), 20); }

__global__ void mask_too_small(const int *in, int *out) {
    out[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, in[threadIdx.x], 1); // BUG shuffle_mask_too_small: sync
}
PROGRAM(shuffle_mask_too_small) { mask_too_small<<<1, 32>>>(filled<int>(32), filled<int>(32)); }

__global__ void vote_of_some(const int *in, unsigned *out) {
    if (in[threadIdx.x] > 10)
        out[threadIdx.x] = __ballot_sync(0xffffffffu, in[threadIdx.x] & 1); // BUG vote_in_a_branch: sync
    out[threadIdx.x] += 1;
}
PROGRAM(vote_in_a_branch) {
    std::vector<int> host(32);
    for (int i = 0; i < 32; i++) host[i] = i;
    int *in = fresh<int>(32);
    cudaMemcpy(in, host.data(), 128, cudaMemcpyHostToDevice);
    vote_of_some<<<1, 32>>>(in, filled<unsigned>(32));
}

__global__ void wait_for_nobody(volatile int *flag) {
    while (*flag == 0) {} // BUG endless_loop: sync
}
PROGRAM(endless_loop) { wait_for_nobody<<<1, 32>>>(filled<int>(1)); }

__global__ void locks_twice(int *lock, int *value) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {} // BUG lock_never_released: sync
        __threadfence();
        *value += 1;
    }
}
PROGRAM(lock_never_released) { locks_twice<<<2, 32>>>(filled<int>(1), filled<int>(1)); }
