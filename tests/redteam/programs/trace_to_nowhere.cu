// Puts /dev/null in the place of the trace's descriptor, once the trace has begun.
// expect: passed; flagged
#include "hostile.h"
__global__ void kernel() {}

int main(int, char** argv) {
    kernel<<<1, 1>>>();
    cudaDeviceSynchronize();
    const char* const where = getenv("GRADER_TRACE");
    if (where && !strncmp(where, "fd:", 3)) dup2(open("/dev/null", O_WRONLY), atoi(where + 3));
    write_right(argv[1], argv[2]);
}
