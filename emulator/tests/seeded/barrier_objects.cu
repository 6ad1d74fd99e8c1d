// Barrier objects (cuda::barrier, mbarrier) that are not set up, or that not enough or too many threads arrive at.
#include "seeded.h"

#include <cuda/barrier>

using Barrier = cuda::barrier<cuda::thread_scope_block>;
#pragma nv_diag_suppress static_var_with_dynamic_init

__device__ unsigned object(const unsigned long long *p) { return (unsigned)__cvta_generic_to_shared(p); }

__global__ void uninitialised(float *out) {
    __shared__ unsigned long long bar;
    unsigned long long token;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(object(&bar)) : "memory"); // BUG barrier_object_not_initialised: memory
    out[threadIdx.x] = (float)token;
}
PROGRAM(barrier_object_not_initialised) { uninitialised<<<1, 32>>>(filled<float>(32)); }

__global__ void used_too_early(unsigned long long *out) {
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(object(&bar)) : "memory"); // BUG barrier_object_used_too_early: race
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(out[threadIdx.x]) : "r"(object(&bar)) : "memory"); // BUG barrier_object_used_too_early: race
}
PROGRAM(barrier_object_used_too_early) { used_too_early<<<1, 64>>>(filled<unsigned long long>(64)); }

__global__ void one_more_than_come(float *out) {
    __shared__ unsigned long long bar;
    unsigned long long token;
    unsigned done = 0;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 65;" ::"r"(object(&bar)) : "memory");
    __syncthreads();
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(object(&bar)) : "memory");
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(object(&bar)), "l"(token) : "memory"); // BUG barrier_object_waits_for_too_many: sync
    out[threadIdx.x] = (float)done;
}
PROGRAM(barrier_object_waits_for_too_many) { one_more_than_come<<<1, 64>>>(filled<float>(64)); }

__global__ void missing_wait(const float *in, float *out) {
    __shared__ Barrier bar;
    __shared__ float s[64];
    if (threadIdx.x == 0) init(&bar, 64);
    __syncthreads();
    s[threadIdx.x] = in[threadIdx.x]; // BUG arrived_but_did_not_wait: race
    if (threadIdx.x < 32) (void)bar.arrive();
    out[threadIdx.x] = s[63 - threadIdx.x]; // BUG arrived_but_did_not_wait: race
}
PROGRAM(arrived_but_did_not_wait) { missing_wait<<<1, 64>>>(filled<float>(64, 1), filled<float>(64)); }
