// A kernel never ends.
// expect: time_limit | runtime_error; gpu
#include "hostile.h"
__global__ void kernel(volatile int stop) { while (stop) {} }

int main(int argc, char** argv) {
    kernel<<<132, 1024>>>(argc);
    cudaDeviceSynchronize();
    return 0;
}
