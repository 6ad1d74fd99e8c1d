// Sends half a line where the trace goes, so that the tracer's next one is its end.
// expect: passed; flagged
#include "hostile.h"
__global__ void kernel() {}

int main(int, char** argv) {
    kernel<<<1, 1>>>();
    cudaDeviceSynchronize();
    const char* const where = getenv("GRADER_TRACE");
    if (where && !strncmp(where, "fd:", 3)) dprintf(atoi(where + 3), "{\"kind\":\"kernel\",\"name\":\"");
    write_right(argv[1], argv[2]);
}
