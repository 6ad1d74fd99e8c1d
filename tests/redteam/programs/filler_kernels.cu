// Computes with two warps on an SM, and launches kernels that fill SMs and do nothing: before the others, and beside them.
// expect: passed; gpu; occupancy 0.1; on t10
#include "hostile_attention.h"

constexpr size_t kUnused = 80 << 10;    // shared memory that keeps other blocks away

__device__ float busy(float value, int steps) {
    for (int i = 0; i < steps; ++i) value = fmaf(value, 0.999f, 0.001f);
    return value;
}

__global__ void __launch_bounds__(1024) fills_without_reading(float* nowhere, int steps) {
    const float value = busy(threadIdx.x, steps);
    if (value < 0) *nowhere = value;
}

__global__ void __launch_bounds__(1024) fills_and_reads(const float* input, float* nowhere, int steps) {
    const float value = busy(input[threadIdx.x], steps);
    if (value < -1e30f) *nowhere = value;
}

int main(int, char** argv) {
    const OnDevice data(argv[1]);
    cudaStream_t work, beside;
    cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking);
    fills_without_reading<<<264, 1024, 0, work>>>(data.output, 20000);
    fills_and_reads<<<264, 1024, 0, work>>>(data.input, data.output, 4000);
    data.compute(data.shape.batches, kUnused, work);
    fills_and_reads<<<264, 1024, 0, beside>>>(data.input, data.output, 4000);
    data.write(argv[2]);
    return 0;
}
