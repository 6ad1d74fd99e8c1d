// Declares eight million registers, in declarations that are each within the limit, one scope inside another.
// expect: compile_error; within 60 s
#include "hostile.h"
#define FOUR(x) x x x x

__global__ void kernel() { asm volatile(FOUR("{.reg .b32 r<1000000>;") FOUR("{.reg .b32 r<1000000>;") FOUR("}") FOUR("}")); }

int main(int, char** argv) {
    kernel<<<1, 1>>>();
    write_zeros(argv[1], argv[2]);
}
