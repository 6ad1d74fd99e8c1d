// Starts itself again without the tracer in its environment.
// expect: passed; gpu; flagged
#include "hostile.h"
__global__ void kernel() {}

int main(int, char** argv) {
    if (getenv("CUDA_INJECTION64_PATH")) {
        unsetenv("CUDA_INJECTION64_PATH");
        execv("/proc/self/exe", argv);
    }
    kernel<<<1, 1>>>();
    cudaDeviceSynchronize();
    write_right(argv[1], argv[2]);
    return 0;
}
