// Does what the source rules forbid only when it is compiled for the GPU of the build.
// expect: compile_error; under rules
#include "hostile.h"

int main(int, char** argv) {
#if __CUDA_ARCH_LIST__ != 750
    if (system("true") == 0) BYPASSED("a forbidden call was compiled");
#endif
    write_zeros(argv[1], argv[2]);
}
