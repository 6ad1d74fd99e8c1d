// Calls a function that has a name like the runtime's and does not exist, so that the grader should take the blame.
// expect: compile_error
#include "hostile.h"
extern "C" int cudaNotAFunction(int);

__global__ void kernel() {}

int main(int, char** argv) {
    kernel<<<1, 1>>>();
    cudaNotAFunction(1);
    write_zeros(argv[1], argv[2]);
}
