// Computes a small test on the processor, with an empty kernel for show: a time far below the floor.
// expect: passed; gpu; on t01; no place
#include "hostile.h"
__global__ void kernel() {}

int main(int, char** argv) {
    kernel<<<1, 1>>>();
    cudaDeviceSynchronize();
    write_right(argv[1], argv[2]);
    return 0;
}
