// Right output from `attention`; beside it a kernel in which half of a block's threads leave before a barrier that
// the other half waits at. compute-sanitizer's synccheck names the line.
#define LAUNCH(input, output, batches, n, d) launch_with_divergent_barrier(input, output, batches, n, d)
void launch_with_divergent_barrier(const float* input, float* output, int batches, int n, int d);
#include "../hw4/attention.cuh"

__global__ void half_waits(float* to, const float* from) {
    __shared__ float tile[64];
    tile[threadIdx.x] = from[threadIdx.x];
    if (threadIdx.x % 32 < 16) {
        __syncthreads();    // not reached by the other lanes of the warp
        to[threadIdx.x] = tile[63 - threadIdx.x];
    }
}

void launch_with_divergent_barrier(const float* input, float* output, int batches, int n, int d) {
    float* to;
    must(cudaMalloc(&to, sizeof(float) * 64), "cudaMalloc");
    half_waits<<<1, 64>>>(to, input);
    must(cudaDeviceSynchronize(), "half_waits");
    attention<<<batches * (n / 64), 64>>>(input, output, n, d);
    must(cudaDeviceSynchronize(), "kernels");
}
