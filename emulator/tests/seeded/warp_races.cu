// Hazards within a warp: since compute capability 7.0 its threads need not run in step.
#include "seeded.h"

__global__ void swap_pairs(int *out) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x; // BUG exchange_without_syncwarp: race
    out[threadIdx.x] = s[threadIdx.x ^ 1]; // BUG exchange_without_syncwarp: race
}
PROGRAM(exchange_without_syncwarp) { swap_pairs<<<1, 32>>>(filled<int>(32)); }

__global__ void legacy_reduction(int *out) {
    __shared__ volatile int s[64];
    int t = threadIdx.x;
    s[t] = t;
    s[t + 32] = t;
    __syncwarp();
    s[t] += s[t + 32]; // BUG volatile_warp_reduction: race
    s[t] += s[t + 16]; // BUG volatile_warp_reduction: race
    s[t] += s[t + 8]; // BUG volatile_warp_reduction: race
    out[t] = s[0]; // BUG volatile_warp_reduction: race
}
PROGRAM(volatile_warp_reduction) { legacy_reduction<<<1, 32>>>(filled<int>(32)); }

__global__ void rotate(int *x) {
    int v = x[(threadIdx.x + 1) & 31]; // BUG rotation_in_place: race
    x[threadIdx.x] = v + threadIdx.x; // BUG rotation_in_place: race
}
PROGRAM(rotation_in_place) { rotate<<<1, 32>>>(filled<int>(32)); }

__global__ void leader(int *out) {
    out[threadIdx.x / 32] = threadIdx.x; // BUG all_lanes_store: race
}
PROGRAM(all_lanes_store) { leader<<<1, 64>>>(filled<int>(2)); }

__global__ void loop_without_second_sync(int *out) {
    __shared__ int s[32];
    int sum = 0;
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        s[threadIdx.x] = i * threadIdx.x; // BUG syncwarp_only_once: race
        __syncwarp();
        sum += s[31 - threadIdx.x]; // BUG syncwarp_only_once: race
    }
    out[threadIdx.x] = sum;
}
PROGRAM(syncwarp_only_once) { loop_without_second_sync<<<1, 32>>>(filled<int>(32)); }
