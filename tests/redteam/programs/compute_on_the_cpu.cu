// Computes on the processor and launches an empty kernel for show.
// expect: passed | time_limit; gpu; flagged; on t10
#include "hostile.h"
__global__ void kernel() {}

int main(int, char** argv) {
    kernel<<<1024, 128>>>();
    cudaDeviceSynchronize();
    write_right(argv[1], argv[2]);
    return 0;
}
