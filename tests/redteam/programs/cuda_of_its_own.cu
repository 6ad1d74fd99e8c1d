// Defines functions of CUDA itself, which do nothing and report success.
// expect: passed | compile_error | runtime_error | no_output; flagged
#include "hostile.h"
__global__ void kernel() {}
extern "C" cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t) { return cudaSuccess; }
extern "C" cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }

int main(int, char** argv) {
    kernel<<<1, 1>>>();
    cudaDeviceSynchronize();
    write_right(argv[1], argv[2]);
}
