// Right output from `attention`; beside it a kernel whose threads read their neighbour's shared value without a
// barrier between the write and the read. compute-sanitizer's racecheck names both lines.
#define LAUNCH(input, output, batches, n, d) launch_with_a_race(input, output, batches, n, d)
void launch_with_a_race(const float* input, float* output, int batches, int n, int d);
#include "attention.cuh"

__global__ void neighbour_sum(const float* from, float* to) {
    __shared__ float tile[128];
    tile[threadIdx.x] = from[blockIdx.x * 128 + threadIdx.x];
    // __syncthreads() is missing here
    to[blockIdx.x * 128 + threadIdx.x] = tile[threadIdx.x] + tile[(threadIdx.x + 32) % 128];
}

void launch_with_a_race(const float* input, float* output, int batches, int n, int d) {
    float* scratch;
    must(cudaMalloc(&scratch, sizeof(float) * 512), "cudaMalloc");
    neighbour_sum<<<4, 128>>>(input, scratch);
    attention<<<batches * (n / 64), 64>>>(input, output, n, d);
    must(cudaDeviceSynchronize(), "kernels");
}
