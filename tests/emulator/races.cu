// Seeded bugs in the use of shared memory, and correct programs beside them. `./races NAME` runs one kernel.
#include <cstdio>
#include <cstring>

__global__ void missing_barrier_after_store(int *out) {
    __shared__ int s[128];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[127 - threadIdx.x]; // race: read
}
__global__ void missing_barrier_before_reuse(int *out) {
    __shared__ int s[64];
    int sum = 0;
    for (int i = 0; i < 3; i++) {
        s[threadIdx.x] = i; // race: overwrite
        __syncthreads();
        sum += s[(threadIdx.x + 32) % 64];
    }
    out[threadIdx.x] = sum;
}
__global__ void reduction_without_barrier(int *out) {
    __shared__ int s[256];
    int t = threadIdx.x;
    s[t] = t;
    __syncthreads();
    for (int k = 128; k; k >>= 1)
        if (t < k) s[t] += s[t + k]; // race: reduction
    if (t == 0) out[0] = s[0];
}
__global__ void all_write_one_word(int *out) {
    __shared__ int s;
    s = threadIdx.x; // race: last writer
    __syncthreads();
    out[threadIdx.x] = s;
}
__global__ void atomic_then_plain_read(int *out) {
    __shared__ int s;
    if (threadIdx.x == 0) s = 0;
    __syncthreads();
    atomicAdd(&s, 1);
    out[threadIdx.x] = s; // race: no barrier after atomics
}
__global__ void float4_tile(float *out) {
    __shared__ float4 s[64];
    s[threadIdx.x] = make_float4(1, 2, 3, 4);
    out[threadIdx.x] = ((float *)s)[255 - threadIdx.x]; // race: tile
}
__global__ void uninitialised_tail(int *out, int n) {
    __shared__ int s[64];
    if (threadIdx.x < n) s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x]; // init: tail
}
__global__ void uninitialised_sum(int *out) {
    __shared__ int s[4];
    atomicAdd(&s[0], 1);
    __syncthreads();
    out[threadIdx.x] = s[0] + s[3]; // init: never stored
}
__global__ void correct(int *out) {
    __shared__ int s[128];
    __shared__ int sum;
    int t = threadIdx.x;
    if (t == 0) sum = 0;
    s[t] = t;
    __syncthreads();
    atomicAdd(&sum, s[127 - t]);
    for (int k = 64; k; k >>= 1) {
        int v = t < k ? s[t + k] : 0;
        __syncthreads();
        if (t < k) s[t] += v;
        __syncthreads();
    }
    out[t] = s[0] - sum;
}
int main(int, char **argv) {
    int *p;
    cudaMalloc(&p, 4096);
#define RUN(name, n, ...) if (strcmp(argv[1], #name) == 0) name<<<2, n>>>(__VA_ARGS__)
    RUN(missing_barrier_after_store, 128, p);
    RUN(missing_barrier_before_reuse, 64, p);
    RUN(reduction_without_barrier, 256, p);
    RUN(all_write_one_word, 96, p);
    RUN(atomic_then_plain_read, 64, p);
    RUN(float4_tile, 64, (float *)p);
    RUN(uninitialised_tail, 64, p, 50);
    RUN(uninitialised_sum, 32, p);
    RUN(correct, 128, p);
    return (int)cudaDeviceSynchronize();
}
