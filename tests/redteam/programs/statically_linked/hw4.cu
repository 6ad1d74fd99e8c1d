// Asks to be linked statically, so that no tracer can be loaded, and computes on the processor.
// expect: passed | compile_error; flagged
#include "hostile.h"
__global__ void kernel() {}

int main(int argc, char** argv) {
    if (argc > 9) kernel<<<1, 1>>>();
    write_right(argv[1], argv[2]);
    return 0;
}
