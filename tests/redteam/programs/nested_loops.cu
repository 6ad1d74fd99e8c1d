// Nests 200 loops, which a careless analysis of loops takes apart recursively.
// expect: compile_error | wrong_answer | runtime_error | no_output | time_limit; within 300 s
#include "hostile.h"
#define TEN(x) x x x x x x x x x x
#define LOOPS(x) TEN(TEN(x)) TEN(TEN(x))

__global__ void kernel(volatile int* p) {
    LOOPS(for (int i = 0; i < p[i]; i++) { p[i] += i;) LOOPS(})
}

int main(int, char** argv) {
    int* p;
    cudaMalloc(&p, 4);
    kernel<<<1, 1>>>(p);
    write_zeros(argv[1], argv[2]);
}
