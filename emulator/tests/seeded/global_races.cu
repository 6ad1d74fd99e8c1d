// Races of blocks, and of a block's warps, in global memory.
#include "seeded.h"

__global__ void smooth_in_place(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 1) x[i] = (x[i] + x[i + 1]) / 2 + 1; // BUG in_place_between_blocks: race
}
PROGRAM(in_place_between_blocks) { smooth_in_place<<<4, 64>>>(filled<float>(256), 256); }

__global__ void exchange(int *x) {
    x[threadIdx.x] = threadIdx.x; // BUG between_warps: race
    x[threadIdx.x] += x[threadIdx.x ^ 32]; // BUG between_warps: race
}
PROGRAM(between_warps) { exchange<<<1, 64>>>(filled<int>(64)); }

__global__ void plain_sum(const int *in, int *sum) {
    if (threadIdx.x == 0) *sum += in[blockIdx.x] + 1; // BUG sum_without_atomics: race
}
PROGRAM(sum_without_atomics) { plain_sum<<<8, 32>>>(filled<int>(8), filled<int>(1)); }

__global__ void cleared_by_block_zero(int *sum) {
    if (blockIdx.x == 0 && threadIdx.x == 0) *sum = 0; // BUG cleared_in_the_same_kernel: race
    __syncthreads();
    atomicAdd(sum, 1); // BUG cleared_in_the_same_kernel: race
}
PROGRAM(cleared_in_the_same_kernel) { cleared_by_block_zero<<<4, 32>>>(filled<int>(1)); }

__global__ void last_block(const int *in, int *partial, unsigned *arrived, int *total) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = in[blockIdx.x] + 1; // BUG last_block_without_fence: race
        last = atomicAdd(arrived, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x < gridDim.x) atomicAdd(total, partial[threadIdx.x]); // BUG last_block_without_fence: race
}
PROGRAM(last_block_without_fence) { last_block<<<8, 64>>>(filled<int>(8), filled<int>(8), filled<unsigned>(1), filled<int>(1)); }

__global__ void hand_over(int *data, volatile int *flag, int *out) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x + 1; // BUG flag_without_fence: race
        __syncthreads();
        if (threadIdx.x == 0) *flag = 1;
    } else {
        if (threadIdx.x == 0)
            while (*flag == 0) {}
        __syncthreads();
        out[threadIdx.x] = data[threadIdx.x]; // BUG flag_without_fence: race
    }
}
PROGRAM(flag_without_fence) { hand_over<<<2, 32>>>(filled<int>(32), filled<int>(1), filled<int>(32)); }

__global__ void overlapping_tiles(int *out) {
    int i = blockIdx.x * 48 + threadIdx.x;
    out[i] = blockIdx.x + 1; // BUG overlapping_output: race
}
PROGRAM(overlapping_output) { overlapping_tiles<<<4, 64>>>(filled<int>(256)); }

__global__ void plain_histogram(const unsigned char *in, int *bins) {
    bins[in[blockIdx.x * blockDim.x + threadIdx.x] & 7]++; // BUG histogram_without_atomics: race
}
PROGRAM(histogram_without_atomics) { plain_histogram<<<4, 32>>>(filled<unsigned char>(128, 5), filled<int>(8)); }

__device__ int best = -1;
__global__ void maximum(const int *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (in[i] + i > best) best = in[i] + i; // BUG compare_then_store: race
}
PROGRAM(compare_then_store) { maximum<<<4, 32>>>(filled<int>(128)); }

__global__ void count_then_read(int *counter, int *out) {
    if (threadIdx.x == 0) {
        atomicAdd(counter, 1); // BUG total_read_too_early: race
        out[blockIdx.x] = *counter; // BUG total_read_too_early: race
    }
}
PROGRAM(total_read_too_early) { count_then_read<<<4, 32>>>(filled<int>(1), filled<int>(4)); }
