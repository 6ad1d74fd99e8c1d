// Holds 65,536 texts that look like names of the runtime, more than the command line of a tool can hold.
// expect: compile_error; within 100 s
#include "hostile.h"
#define S2(x) S(x)
#define S(x) #x
#define NAME(a, b, c, d) "cudaLongNameOfAFunction" S2(a) S2(b) S2(c) S2(d) "_ptsz",
#define D4(a, b, c) NAME(a, b, c, 0) NAME(a, b, c, 1) NAME(a, b, c, 2) NAME(a, b, c, 3) NAME(a, b, c, 4) NAME(a, b, c, 5) \
    NAME(a, b, c, 6) NAME(a, b, c, 7) NAME(a, b, c, 8) NAME(a, b, c, 9)
#define D3(a, b) D4(a, b, 0) D4(a, b, 1) D4(a, b, 2) D4(a, b, 3) D4(a, b, 4) D4(a, b, 5) D4(a, b, 6) D4(a, b, 7) D4(a, b, 8)
#define D2(a) D3(a, 0) D3(a, 1) D3(a, 2) D3(a, 3) D3(a, 4) D3(a, 5) D3(a, 6) D3(a, 7) D3(a, 8) D3(a, 9)
const char* volatile const names[] = {D2(0) D2(1) D2(2) D2(3) D2(4) D2(5) D2(6) D2(7) D2(8) D2(9)};

__global__ void kernel() {}

int main(int argc, char** argv) {
    kernel<<<1, 1>>>();
    if (argc > 90) puts(names[argc]);
    write_zeros(argv[1], argv[2]);
}
