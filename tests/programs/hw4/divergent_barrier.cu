// Right output from `attention`; beside it a kernel in which lanes wait at a __syncwarp whose mask leaves them out.
// compute-sanitizer's synccheck names the line.
#define LAUNCH(input, output, batches, n, d) launch_with_wrong_mask(input, output, batches, n, d)
void launch_with_wrong_mask(const float* input, float* output, int batches, int n, int d);
#include "attention.cuh"

__global__ void half_waits(float* to, const float* from) {
    __shared__ float tile[32];
    const unsigned lower = __ballot_sync(0xffffffffu, threadIdx.x < 16);
    tile[threadIdx.x] = from[threadIdx.x];
    if (threadIdx.x < 16) {
        __syncwarp(lower);
        to[threadIdx.x] = tile[15 - threadIdx.x];
    }
    __syncwarp(lower);    // all 32 lanes come here, and the mask names 16
    to[threadIdx.x] += tile[threadIdx.x];
}

void launch_with_wrong_mask(const float* input, float* output, int batches, int n, int d) {
    float* to;
    must(cudaMalloc(&to, sizeof(float) * 32), "cudaMalloc");
    half_waits<<<1, 32>>>(to, input);
    must(cudaDeviceSynchronize(), "half_waits");
    attention<<<batches * (n / 64), 64>>>(input, output, n, d);
    must(cudaDeviceSynchronize(), "kernels");
}
