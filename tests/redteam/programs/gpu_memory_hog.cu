// Takes all of the GPU's memory and crashes.
// expect: no_output | memory_limit | runtime_error; gpu
#include "hostile.h"

int main(int, char** argv) {
    void* block;
    for (size_t size = size_t(64) << 30; size >= 1 << 20; size /= 2) while (cudaMalloc(&block, size) == cudaSuccess) {}
    abort();
    return 0;
}
