// A kernel never ends.
// expect: time_limit | runtime_error; gpu
#include "hostile.h"
__device__ volatile int stopped = 0;    // nothing sets it, but the compiler cannot know
__global__ void kernel() { while (!stopped) {} }

int main() {
    kernel<<<132, 1024>>>();
    cudaDeviceSynchronize();
    return 0;
}
