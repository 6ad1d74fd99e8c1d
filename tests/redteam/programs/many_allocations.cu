// Allocates device memory thirty thousand times.
// expect: passed | time_limit | memory_limit; gpu
#include "hostile.h"

int main(int, char** argv) {
    for (int i = 0; i < 30000; ++i) { void* block; if (cudaMalloc(&block, 256) != cudaSuccess) break; }
    write_right(argv[1], argv[2]);
    return 0;
}
