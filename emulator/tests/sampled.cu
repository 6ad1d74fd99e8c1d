// Kernels for sampled runs, in which few blocks stand for all. main runs the one named in argv[1].
#include <cstdio>
#include <cstring>

#include <cuda_runtime.h>

__device__ __align__(128) float numbers[1 << 15];

__global__ void same_work(int n) {
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; ++i) sum += numbers[(blockIdx.x * 7 + i * 64 + threadIdx.x * 2) % 4096];    // strided load
    numbers[4096 + blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Both warps read the same 32 lines, twice.
__global__ void read_twice() {
    float sum = 0;
#pragma unroll 1
    for (int pass = 0; pass < 2; ++pass)
#pragma unroll 1
        for (int line = 0; line < 32; ++line) sum += __ldcg(&numbers[line * 32 + threadIdx.x % 32]);    // reused load
    numbers[4096 + threadIdx.x] = sum;
}

int main(int, char** argv) {
    if (std::strcmp(argv[1], "same_work") == 0)
        for (int launch = 0; launch < 300; ++launch) same_work<<<300, 64>>>(launch % 5 + 1);
    else read_twice<<<1, 64>>>();
    std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
}
