// Removes the tracer from the environment before CUDA looks.
// expect: passed; gpu; flagged
#include "hostile.h"
__global__ void kernel() {}
__attribute__((constructor)) static void before() { unsetenv("CUDA_INJECTION64_PATH"); }

int main(int, char** argv) {
    kernel<<<1, 1>>>();
    cudaDeviceSynchronize();
    write_right(argv[1], argv[2]);
    return 0;
}
