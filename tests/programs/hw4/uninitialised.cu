// Right output from `attention`; beside it a kernel that adds up global memory nobody has written.
// compute-sanitizer's initcheck names the line.
#define LAUNCH(input, output, batches, n, d) launch_with_uninitialised_reads(input, output, batches, n, d)
void launch_with_uninitialised_reads(const float* input, float* output, int batches, int n, int d);
#include "attention.cuh"

__global__ void add_to(float* sums, const float* values) {
    sums[threadIdx.x] += values[threadIdx.x];    // sums was never set
}

void launch_with_uninitialised_reads(const float* input, float* output, int batches, int n, int d) {
    float* sums;
    must(cudaMalloc(&sums, sizeof(float) * 64), "cudaMalloc");
    add_to<<<1, 64>>>(sums, input);
    attention<<<batches * (n / 64), 64>>>(input, output, n, d);
    must(cudaDeviceSynchronize(), "kernels");
}
