// Breaks a source rule in a line of two megabytes, which every test's reason and cause quoted.
// expect: compile_error; under rules; within 120 s
#include "hostile.h"
#define TEN(x) x x x x x x x x x x

__global__ void kernel() {}

int main(int, char** argv) {
    kernel<<<1, 1>>>();
    write_zeros(argv[1], argv[2]);
    return system(TEN(TEN(TEN(TEN(TEN("two megabytes of it "))))));
}
