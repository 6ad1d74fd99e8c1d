// Kernels whose counters are known by hand. main runs the one named in argv[1].
#include <cstdio>
#include <cstring>

#include <cuda_runtime.h>

constexpr int kFloats = 4096;
__device__ __align__(128) float4 vectors[kFloats / 4];
__device__ __align__(128) float numbers[kFloats];
__device__ __align__(128) int counts[64];

// ---- shared memory: one block of one warp ----
template <int Stride>
__global__ void shared_stride() {
    __shared__ float tile[33 * 32];
    for (int i = threadIdx.x; i < 33 * 32; i += 32) tile[i] = i;
    __syncthreads();
    numbers[threadIdx.x] = tile[threadIdx.x * Stride];    // strided load
}
__global__ void shared_store_stride2() {
    __shared__ float tile[64];
    tile[threadIdx.x * 2] = threadIdx.x;    // strided store
    __syncthreads();
    numbers[threadIdx.x] = tile[threadIdx.x ^ 1];
}
__global__ void shared_float4(int stride, int apart) {
    __shared__ float4 tile[32 * 9];
    for (int i = threadIdx.x; i < 32 * 9; i += 32) tile[i] = make_float4(i, i, i, i);
    __syncthreads();
    vectors[threadIdx.x] = tile[threadIdx.x / apart * stride];    // vector load
}
__global__ void shared_float2() {
    __shared__ float2 tile[32];
    tile[threadIdx.x] = make_float2(threadIdx.x, 1);
    __syncthreads();
    const float2 x = tile[31 - threadIdx.x];    // half-warps
    numbers[threadIdx.x] = x.x + x.y;
}
__global__ void four_words_of_a_row() {
    __shared__ float tile[32 * 32];
    for (int i = 0; i < 32; ++i) tile[i * 32 + threadIdx.x] = i;
    __syncthreads();
    const float* row = tile + threadIdx.x * 32;
    numbers[threadIdx.x] = row[0] + row[1] + row[2] + row[3];    // fused
}

__global__ void four_words_with_stores_between(int place) {
    __shared__ float tile[33 * 32];
    for (int i = 0; i < 33; ++i) tile[i * 32 + threadIdx.x] = i;
    __syncthreads();
    const float* row = tile + threadIdx.x * 32;
    for (int i = 0; i < 4; ++i) tile[place + threadIdx.x] = row[i];    // may be the same memory
    __syncthreads();
    numbers[threadIdx.x] = tile[place + threadIdx.x];
}

// ---- global memory ----
__global__ void global_float4() {
    const float4 x = vectors[threadIdx.x];    // coalesced float4
    vectors[threadIdx.x + 64] = make_float4(x.w, x.z, x.y, x.x);
}
__global__ void global_stride(int stride) {
    numbers[threadIdx.x] = numbers[threadIdx.x * stride + 64];    // strided global load
}
__global__ void global_misaligned() {
    numbers[threadIdx.x + 1] = 1;    // starts within a sector
}

// ---- control ----
__global__ void half_divergent() {
    float x = threadIdx.x;
    if (threadIdx.x % 32 < 16) {    // half the lanes
        for (int i = 0; i < 4; ++i) x = __fsqrt_rn(x + numbers[i]);
        numbers[threadIdx.x] = x;
    } else {
        counts[threadIdx.x] = 1;
    }
}
__global__ void one_warp_of_two_idle() {
    if (threadIdx.x < 32) numbers[threadIdx.x] = 2;    // whole warps
}
__global__ void barriers() {
    for (int i = 0; i < 5; ++i) __syncthreads();
}
__global__ void polynomial(int n) {
    float x = threadIdx.x, y = 0;
    for (int i = 0; i < n; ++i) y = __fmaf_rn(y, x, 1.5f);
    numbers[threadIdx.x] = __fmul_rn(__fadd_rn(y, 2.0f), y);
}
__global__ void doubles(double a) { vectors[threadIdx.x].x = __dadd_rn(__dmul_rn(a, threadIdx.x), 1.0) > 3; }

// ---- atomics ----
__global__ void global_atomics() { atomicAdd(&counts[threadIdx.x % 8], 1); }
__global__ void shared_histogram() {
    __shared__ int bins[4];
    if (threadIdx.x < 4) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[threadIdx.x % 4], 1);    // eight lanes on each
    __syncthreads();
    if (threadIdx.x < 4) counts[threadIdx.x] = bins[threadIdx.x];
}

// ---- local memory ----
__global__ void local_array(int n) {
    float mine[64];
    for (int i = 0; i < 64; ++i) mine[i] = i;
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += mine[(i * 7 + n) % 64];
    numbers[threadIdx.x] = sum;
}

int main(int, char** argv) {
    const char* name = argv[1];
    const auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
    if (is("shared_stride1")) shared_stride<1><<<1, 32>>>();
    else if (is("shared_stride2")) shared_stride<2><<<1, 32>>>();
    else if (is("shared_stride32")) shared_stride<32><<<1, 32>>>();
    else if (is("shared_stride33")) shared_stride<33><<<1, 32>>>();
    else if (is("shared_broadcast")) shared_stride<0><<<1, 32>>>();
    else if (is("shared_store_stride2")) shared_store_stride2<<<1, 32>>>();
    else if (is("shared_float4")) shared_float4<<<1, 32>>>(1, 1);
    else if (is("shared_float4_broadcast")) shared_float4<<<1, 32>>>(0, 1);
    else if (is("shared_float4_pairs")) shared_float4<<<1, 32>>>(1, 2);
    else if (is("shared_float4_rows")) shared_float4<<<1, 32>>>(8, 1);
    else if (is("shared_float4_padded")) shared_float4<<<1, 32>>>(9, 1);
    else if (is("shared_float2")) shared_float2<<<1, 32>>>();
    else if (is("four_words_of_a_row")) four_words_of_a_row<<<1, 32>>>();
    else if (is("four_words_with_stores_between")) four_words_with_stores_between<<<1, 32>>>(1024);
    else if (is("global_float4")) global_float4<<<2, 32>>>();
    else if (is("global_stride2")) global_stride<<<1, 32>>>(2);
    else if (is("global_stride8")) global_stride<<<1, 32>>>(8);
    else if (is("global_broadcast")) global_stride<<<1, 32>>>(0);
    else if (is("global_misaligned")) global_misaligned<<<1, 32>>>();
    else if (is("half_divergent")) half_divergent<<<1, 64>>>();
    else if (is("one_warp_of_two_idle")) one_warp_of_two_idle<<<1, 64>>>();
    else if (is("barriers")) barriers<<<3, 128>>>();
    else if (is("polynomial")) polynomial<<<2, 48>>>(10);
    else if (is("doubles")) doubles<<<1, 32>>>(1.5);
    else if (is("global_atomics")) global_atomics<<<1, 64>>>();
    else if (is("shared_histogram")) shared_histogram<<<1, 32>>>();
    else if (is("local_array")) local_array<<<1, 32>>>(10);
    else return 2;
    const cudaError_t error = cudaDeviceSynchronize();
    std::printf("%s\n", cudaGetErrorString(error));
    return error != cudaSuccess;
}
