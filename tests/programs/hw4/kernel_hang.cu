// A kernel never ends.
__global__ void spin(volatile float* output) {
    while (output[0] == 0.0f) continue;
}

#define LAUNCH(input, output, batches, n, d) cudaMemset(output, 0, 4), spin<<<1, 32>>>(output)
#include "attention.cuh"
