// Reductions, scans and exchanges within a block, with a barrier missing or assumed. A line of the race says which
// program it belongs to: `// RACE name`.
#include "../seeded/seeded.h"

__global__ void next_row(const int *rows, int *out) {
    __shared__ int row;
    for (int i = 0; i < 3; i++) {
        if (threadIdx.x == 0) row = rows[i] + i; // RACE broadcast_overwritten
        __syncthreads();
        out[i * blockDim.x + threadIdx.x] = row; // RACE broadcast_overwritten
    }
}
PROGRAM(broadcast_overwritten) { next_row<<<1, 96>>>(filled<int>(3, 1), filled<int>(288)); }

// From 64 threads on it was written for one warp of 64.
__global__ void two_warps_in_step(const int *in, int *out) {
    volatile __shared__ int s[128];
    const int t = threadIdx.x;
    s[t] = in[t] + t;
    __syncthreads();
    if (t < 64) s[t] += s[t + 64]; // RACE two_warps_are_not_in_step
    if (t < 32) {
        s[t] += s[t + 32]; // RACE two_warps_are_not_in_step
        __syncwarp();
        if (t == 0)
            for (int i = 1; i < 32; i++) s[0] += s[i];
    }
    if (t == 0) *out = s[0];
}
PROGRAM(two_warps_are_not_in_step) { two_warps_in_step<<<1, 128>>>(filled<int>(128, 1), filled<int>(1)); }

__global__ void halving(const float *in, float *out) {
    extern __shared__ float partial[];
    unsigned t = threadIdx.x;
    partial[t] = in[blockIdx.x * blockDim.x + t]; // RACE halving_without_barrier
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) partial[t] += partial[t + half]; // RACE halving_without_barrier
    }
    if (!t) out[blockIdx.x] = partial[0];
}
PROGRAM(halving_without_barrier) { halving<<<2, 256, 1024>>>(filled<float>(512, 1), filled<float>(2)); }

// Two reductions, one scratch.
__device__ float reduce(float value, float *scratch, bool maximum) {
    for (int k = 16; k; k /= 2) {
        float other = __shfl_xor_sync(~0u, value, k);
        value = maximum ? fmaxf(value, other) : value + other;
    }
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value; // RACE scratch_used_twice
    __syncthreads();
    float all = scratch[0]; // RACE scratch_used_twice
    for (int w = 1; w < blockDim.x / 32; w++) all = maximum ? fmaxf(all, scratch[w]) : all + scratch[w]; // RACE scratch_used_twice
    return all;
}
__global__ void softmax_row(const float *in, float *out) {
    __shared__ float scratch[4];
    float x = in[threadIdx.x] + threadIdx.x, top = reduce(x, scratch, true), e = expf(x - top);
    out[threadIdx.x] = e / reduce(e, scratch, false);
}
PROGRAM(scratch_used_twice) { softmax_row<<<1, 128>>>(filled<float>(128, 1), filled<float>(128)); }

__global__ void first_warp_finishes(const int *in, int *out) {
    __shared__ int sums[4];
    int sum = __reduce_add_sync(~0u, in[threadIdx.x]);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum; // RACE first_warp_finishes_too_early
    if (threadIdx.x == 0) *out = sums[0] + sums[1] + sums[2] + sums[3]; // RACE first_warp_finishes_too_early
}
PROGRAM(first_warp_finishes_too_early) { first_warp_finishes<<<1, 128>>>(filled<int>(128, 1), filled<int>(1)); }

__global__ void transposed_in_place(float *m) {
    __shared__ float tile[16][17];
    const int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = m[y * 16 + x];
    __syncthreads();
    const float mine = tile[y][x]; // RACE transposed_in_place
    tile[x][y] = mine + 1; // RACE transposed_in_place
    __syncthreads();
    m[y * 16 + x] = tile[y][x];
}
PROGRAM(transposed_in_place) { transposed_in_place<<<1, dim3(16, 16)>>>(filled<float>(256, 1)); }

__global__ void running_sums(int *values) {
    __shared__ int s[128];
    const int t = threadIdx.x;
    s[t] = values[t];
    for (int step = 1; step < 128; step *= 2) {
        __syncthreads();
        int left = t >= step ? s[t - step] : 0; // RACE scan_in_place
        s[t] += left; // RACE scan_in_place
    }
    values[t] = s[t];
}
PROGRAM(scan_in_place) { running_sums<<<1, 128>>>(filled<int>(128, 1)); }

__global__ void shared_histogram(const unsigned char *in, int *out) {
    __shared__ int bins[64];
    if (threadIdx.x < 64) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[in[threadIdx.x] % 64], 1); // RACE histogram_read_too_early
    if (threadIdx.x < 64) out[threadIdx.x] = bins[threadIdx.x]; // RACE histogram_read_too_early
}
PROGRAM(histogram_read_too_early) { shared_histogram<<<1, 128>>>(filled<unsigned char>(128, 5), filled<int>(64)); }

// A lock-free maximum: one side atomic, the other a plain store.
__global__ void mixed(const int *in, int *out) {
    __shared__ int top;
    if (threadIdx.x == 0) top = -1;
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(&top, in[threadIdx.x]); // RACE atomic_beside_a_plain_store
    else if (in[threadIdx.x] + threadIdx.x > 5) top = threadIdx.x; // RACE atomic_beside_a_plain_store
    __syncthreads();
    out[threadIdx.x] = top;
}
PROGRAM(atomic_beside_a_plain_store) { mixed<<<1, 128>>>(filled<int>(128, 1), filled<int>(128)); }

// A scratch row in global memory, for a block whose shared memory is full.
__global__ void scratch_in_global_memory(const float *in, float *scratch, float *out) {
    float *mine = scratch + blockIdx.x * blockDim.x;
    mine[threadIdx.x] = in[threadIdx.x] * 2 + 1; // RACE global_scratch_without_barrier
    out[blockIdx.x * blockDim.x + threadIdx.x] = mine[blockDim.x - 1 - threadIdx.x]; // RACE global_scratch_without_barrier
}
PROGRAM(global_scratch_without_barrier) {
    scratch_in_global_memory<<<2, 64>>>(filled<float>(64, 1), filled<float>(128), filled<float>(128));
}
