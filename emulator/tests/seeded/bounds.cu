// Accesses outside of what they are meant for: global, shared and local memory, alignment, pointers of the wrong side.
#include "seeded.h"

__global__ void inclusive_limit(float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) out[i] = i; // BUG write_past_the_end: memory
}
PROGRAM(write_past_the_end) { inclusive_limit<<<5, 64>>>(filled<float>(300), 300); }

__global__ void neighbour_on_the_right(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] + in[i + 1]; // BUG read_past_the_end: memory
}
PROGRAM(read_past_the_end) { neighbour_on_the_right<<<4, 64>>>(filled<float>(256), filled<float>(256)); }

__global__ void neighbour_on_the_left(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] - in[i - 1]; // BUG read_before_the_start: memory
}
PROGRAM(read_before_the_start) { neighbour_on_the_left<<<4, 64>>>(filled<float>(256), filled<float>(256)); }

__global__ void no_guard(int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = i; // BUG last_block_without_guard: memory
}
PROGRAM(last_block_without_guard) { no_guard<<<(1000 + 127) / 128, 128>>>(filled<int>(1000)); }

__global__ void double_all(double *x, int n) {
    int i = threadIdx.x;
    if (i < n) x[i] *= 2; // BUG allocated_elements_not_bytes: memory
}
PROGRAM(allocated_elements_not_bytes) {
    double *x;
    cudaMalloc(&x, 128);
    cudaMemset(x, 0, 128);
    double_all<<<1, 128>>>(x, 128);
}

__global__ void product_of_indices(const int *in, int *out, int row) {
    int i = row * row + threadIdx.x; // overflows to a negative number
    out[threadIdx.x] = in[i]; // BUG index_overflow: memory
}
PROGRAM(index_overflow) { product_of_indices<<<1, 32>>>(filled<int>(64), filled<int>(32), 50000); }

__device__ float table[64];
__global__ void beyond_a_variable(float *out) {
    out[threadIdx.x] = table[threadIdx.x]; // BUG device_variable_past_the_end: memory
}
PROGRAM(device_variable_past_the_end) { beyond_a_variable<<<1, 96>>>(filled<float>(96)); }

__global__ void tile_too_small(int *out) {
    __shared__ int tile[64];
    tile[threadIdx.x] = threadIdx.x; // BUG shared_past_the_end: memory
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
PROGRAM(shared_past_the_end) { tile_too_small<<<1, 96>>>(filled<int>(96)); }

__global__ void dynamic_tile(float *out) {
    extern __shared__ float s[];
    s[threadIdx.x] = threadIdx.x; // BUG dynamic_shared_not_asked_for: memory
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}
PROGRAM(dynamic_shared_not_asked_for) { dynamic_tile<<<1, 64, 64>>>(filled<float>(64)); }

__global__ void local_window(const int *in, int *out, int n) {
    int window[8];
    for (int k = 0; k < n; k++) window[k] = in[k]; // BUG local_past_the_end: memory
    out[threadIdx.x] = window[in[threadIdx.x] & 7];
}
PROGRAM(local_past_the_end) { local_window<<<1, 32>>>(filled<int>(64), filled<int>(32), 16); }

__global__ void store_one(int *p) {
    p[threadIdx.x] = 1; // BUG null_pointer: memory // BUG host_pointer: memory
}
PROGRAM(null_pointer) { store_one<<<1, 32>>>(nullptr); }
PROGRAM(host_pointer) { store_one<<<1, 32>>>((int *)malloc(4096)); }

__global__ void vector_load(const float *in, float4 *out) {
    out[threadIdx.x] = *(const float4 *)(in + threadIdx.x); // BUG misaligned_float4: memory
}
PROGRAM(misaligned_float4) { vector_load<<<1, 32>>>(filled<float>(64), filled<float4>(32)); }

__global__ void vector_store_shared(float2 *out) {
    __shared__ float tile[66];
    tile[threadIdx.x] = tile[threadIdx.x + 32] = 0;
    __syncthreads();
    *(float2 *)&tile[threadIdx.x + 1] = make_float2(1, 2); // BUG misaligned_shared: memory
    __syncthreads();
    out[threadIdx.x] = *(float2 *)&tile[2 * (threadIdx.x & 15)];
}
PROGRAM(misaligned_shared) { vector_store_shared<<<1, 32>>>(filled<float2>(32)); }

__global__ void histogram(const int *in, int *bins) {
    atomicAdd(&bins[in[threadIdx.x]], 1); // BUG atomic_past_the_end: memory
}
PROGRAM(atomic_past_the_end) {
    std::vector<int> host(64, 3);
    host[40] = 900;
    int *in = fresh<int>(64);
    cudaMemcpy(in, host.data(), 256, cudaMemcpyHostToDevice);
    histogram<<<1, 64>>>(in, filled<int>(16));
}
