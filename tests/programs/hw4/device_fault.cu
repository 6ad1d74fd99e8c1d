// A kernel writes far outside every allocation.
__global__ void fault(float* output) { output[(size_t(1) << 40) + threadIdx.x] = 1.0f; }

#define LAUNCH(input, output, batches, n, d) fault<<<1, 32>>>(output)
#include "attention.cuh"
