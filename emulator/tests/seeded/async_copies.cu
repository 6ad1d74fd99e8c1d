// Asynchronous copies (cp.async) that are not waited for, or not by all who need them.
#include "seeded.h"

#include <cuda_pipeline_primitives.h>

__global__ void never_waits(const float *in, float *out) {
    __shared__ float s[128];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], &in[t], 4); // BUG missing_wait: race
    __pipeline_commit();
    __syncthreads();
    out[t] = s[127 - t]; // BUG missing_wait: race
}
PROGRAM(missing_wait) { never_waits<<<1, 128>>>(filled<float>(128, 1), filled<float>(128)); }

__global__ void own_element(const int *in, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], &in[t], 4); // BUG own_element_too_early: race
    __pipeline_commit();
    int early = s[t]; // BUG own_element_too_early: race
    __pipeline_wait_prior(0);
    out[t] = early + s[t];
}
PROGRAM(own_element_too_early) { own_element<<<1, 32>>>(filled<int>(32, 1), filled<int>(32)); }

__global__ void never_commits(const float4 *in, float *out) {
    __shared__ float4 s[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], &in[t], 16); // BUG missing_commit: race
    __pipeline_wait_prior(0); // of no group
    __syncthreads();
    out[t] = s[63 - t].y; // BUG missing_commit: race
}
PROGRAM(missing_commit) { never_commits<<<1, 64>>>(filled<float4>(64, 1), filled<float>(64)); }

// Two stages: while one tile is summed, the next is on its way.
__global__ void two_stages(const int *in, int *out, int tiles) {
    __shared__ int s[2][64];
    int t = threadIdx.x, sum = 0;
    __pipeline_memcpy_async(&s[0][t], &in[t], 4); // BUG waits_for_too_few_groups: race
    __pipeline_commit();
#pragma unroll 1
    for (int k = 0; k < tiles; k++) {
        if (k + 1 < tiles) {
            __pipeline_memcpy_async(&s[(k + 1) % 2][t], &in[(k + 1) * 64 + t], 4); // BUG waits_for_too_few_groups: race
            __pipeline_commit();
        }
        __pipeline_wait_prior(1); // the last tile's group is the newest one
        __syncthreads();
        sum += s[k % 2][63 - t]; // BUG waits_for_too_few_groups: race
        __syncthreads();
    }
    out[t] = sum;
}
PROGRAM(waits_for_too_few_groups) { two_stages<<<1, 64>>>(filled<int>(64, 1), filled<int>(64), 1), two_stages<<<1, 64>>>(filled<int>(192, 1), filled<int>(64), 3); }

__global__ void waits_too_late(const int *in, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], &in[t], 4); // BUG wait_behind_the_barrier: race
    __pipeline_commit();
    __syncthreads();
    __pipeline_wait_prior(0);
    out[t] = s[127 - t]; // BUG wait_behind_the_barrier: race
}
PROGRAM(wait_behind_the_barrier) { waits_too_late<<<1, 128>>>(filled<int>(128, 1), filled<int>(128)); }

__global__ void no_barrier(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], &in[t], 4); // BUG wait_without_barrier: race
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[t] = s[63 - t]; // BUG wait_without_barrier: race
}
PROGRAM(wait_without_barrier) { no_barrier<<<1, 64>>>(filled<int>(64, 1), filled<int>(64)); }

__global__ void overtaken(const int *in, int *out, int tiles) {
    __shared__ int s[64];
    int t = threadIdx.x, sum = 0;
#pragma unroll 1
    for (int k = 0; k < tiles; k++) {
        __pipeline_memcpy_async(&s[t], &in[k * 64 + t], 4); // BUG copied_over_while_read: race
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        sum += s[63 - t]; // BUG copied_over_while_read: race
    }
    out[t] = sum;
}
PROGRAM(copied_over_while_read) { overtaken<<<1, 64>>>(filled<int>(192, 1), filled<int>(64), 3); }

__global__ void padded(const int *in, int *out, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < n) __pipeline_memcpy_async(&s[t], &in[t], 4); // BUG stored_before_the_arrival: race
    __pipeline_commit();
    if (t >= n - 1) s[t] = -1; // BUG stored_before_the_arrival: race
    __pipeline_wait_prior(0);
    __syncthreads();
    out[t] = s[63 - t];
}
PROGRAM(stored_before_the_arrival) { padded<<<1, 64>>>(filled<int>(64, 1), filled<int>(64), 50); }
