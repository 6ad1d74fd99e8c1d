// Ends by quick_exit, which runs no destructor: the trace has no end.
// expect: passed; flagged
#include "hostile.h"
__global__ void kernel() {}

int main(int, char** argv) {
    kernel<<<1, 1>>>();
    cudaDeviceSynchronize();
    write_right(argv[1], argv[2]);
    quick_exit(0);
}
