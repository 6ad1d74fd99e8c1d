// Right output, but its copy kernel has one thread too many per row of blocks: the last one reads and writes past the
// end of both buffers. compute-sanitizer's memcheck names kernel, block, thread and line.
#define LAUNCH(input, output, batches, n, d) launch_with_a_stray_write(input, output, batches, n, d)
void launch_with_a_stray_write(const float* input, float* output, int batches, int n, int d);
#include "attention.cuh"

__global__ void copy_all(const float* from, float* to, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= count) to[i] = from[i];    // should be i < count
}

void launch_with_a_stray_write(const float* input, float* output, int batches, int n, int d) {
    const int count = batches * n * d;
    float* scratch;
    must(cudaMalloc(&scratch, sizeof(float) * count), "cudaMalloc");
    attention<<<batches * (n / 64), 64>>>(input, scratch, n, d);
    copy_all<<<count / 256 + 1, 256>>>(scratch, output, count);
    must(cudaDeviceSynchronize(), "kernels");
}
