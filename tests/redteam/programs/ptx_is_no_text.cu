// Has PTX that is no text and that no assembler takes.
// expect: compile_error
#include "hostile.h"

__global__ void kernel(int* p) {
    asm volatile("// \xff\xfe");
    *p = 1;
}

int main(int, char** argv) { write_right(argv[1], argv[2]); }
