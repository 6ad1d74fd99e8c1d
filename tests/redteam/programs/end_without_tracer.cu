// Ends with _exit, so that no trace is completed.
// expect: passed; flagged
#include "hostile.h"
__global__ void kernel(int* there) {
    if (there) *there = 1;
}

int main(int, char** argv) {
    kernel<<<1, 1>>>(nullptr);
    cudaDeviceSynchronize();
    write_right(argv[1], argv[2]);
    _exit(0);
    return 0;
}
