// Races of warps in shared memory.
#include "seeded.h"

__global__ void reverse(int *out) {
    __shared__ int s[128];
    s[threadIdx.x] = threadIdx.x; // BUG missing_barrier_after_store: race
    out[threadIdx.x] = s[127 - threadIdx.x]; // BUG missing_barrier_after_store: race
}
PROGRAM(missing_barrier_after_store) { reverse<<<2, 128>>>(filled<int>(128)); }

__global__ void reuse(int *out) {
    __shared__ int s[64];
    int sum = 0;
#pragma unroll 1
    for (int i = 0; i < 3; i++) {
        s[threadIdx.x] = i; // BUG missing_barrier_before_reuse: race
        __syncthreads();
        sum += s[(threadIdx.x + 32) % 64]; // BUG missing_barrier_before_reuse: race
    }
    out[threadIdx.x] = sum;
}
PROGRAM(missing_barrier_before_reuse) { reuse<<<1, 64>>>(filled<int>(64)); }

__global__ void reduction(int *out) {
    __shared__ int s[256];
    int t = threadIdx.x;
    s[t] = t;
    __syncthreads();
#pragma unroll 1
    for (int k = 128; k; k >>= 1)
        if (t < k) s[t] += s[t + k]; // BUG reduction_without_barrier: race
    if (t == 0) out[0] = s[0];
}
PROGRAM(reduction_without_barrier) { reduction<<<1, 256>>>(filled<int>(1)); }

__global__ void last_writer(int *out) {
    __shared__ int s;
    s = threadIdx.x; // BUG all_write_one_word: race
    __syncthreads();
    out[threadIdx.x] = s;
}
PROGRAM(all_write_one_word) { last_writer<<<1, 96>>>(filled<int>(96)); }

__global__ void count(int *out) {
    __shared__ int s;
    if (threadIdx.x == 0) s = 0;
    __syncthreads();
    atomicAdd(&s, 1); // BUG atomic_then_plain_read: race
    out[threadIdx.x] = s; // BUG atomic_then_plain_read: race
}
PROGRAM(atomic_then_plain_read) { count<<<1, 64>>>(filled<int>(64)); }

__global__ void cleared_by_one(int *out) {
    __shared__ int s;
    if (threadIdx.x == 0) s = 0; // BUG cleared_without_barrier: race
    atomicAdd(&s, threadIdx.x); // BUG cleared_without_barrier: race
    __syncthreads();
    out[threadIdx.x] = s;
}
PROGRAM(cleared_without_barrier) { cleared_by_one<<<1, 64>>>(filled<int>(64)); }

__global__ void float4_tile(float *out) {
    __shared__ float4 s[64];
    s[threadIdx.x] = make_float4(1, 2, 3, 4); // BUG vector_store_scalar_load: race
    out[threadIdx.x] = ((float *)s)[255 - threadIdx.x]; // BUG vector_store_scalar_load: race
}
PROGRAM(vector_store_scalar_load) { float4_tile<<<1, 64>>>(filled<float>(64)); }

__global__ void product(const float *a, const float *b, float *c, int n) {
    __shared__ float ta[16][16], tb[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < n; k += 16) {
        ta[y][x] = a[row * n + k + x]; // BUG tiles_overwritten: race
        tb[y][x] = b[(k + y) * n + column]; // BUG tiles_overwritten: race
        __syncthreads();
        for (int j = 0; j < 16; j++) sum += ta[y][j] * tb[j][x]; // BUG tiles_overwritten: race
    }
    c[row * n + column] = sum;
}
PROGRAM(tiles_overwritten) {
    product<<<dim3(2, 2), dim3(16, 16)>>>(filled<float>(1024, 1), filled<float>(1024, 2), filled<float>(1024), 32);
}

__global__ void volatile_reduction(int *out) {
    __shared__ volatile int s[128];
    int t = threadIdx.x;
    s[t] = t;
    __syncthreads();
    if (t < 64) s[t] += s[t + 64]; // BUG volatile_is_no_barrier: race
    out[t] = s[t ^ 32]; // BUG volatile_is_no_barrier: race
}
PROGRAM(volatile_is_no_barrier) { volatile_reduction<<<1, 128>>>(filled<int>(128)); }

__global__ void unsorted_flags(unsigned char *out) {
    __shared__ unsigned char s[128];
    s[threadIdx.x] = (unsigned char)threadIdx.x; // BUG bytes: race
    out[threadIdx.x] = s[(threadIdx.x + 64) & 127]; // BUG bytes: race
}
PROGRAM(bytes) { unsorted_flags<<<1, 128>>>(filled<unsigned char>(128)); }
