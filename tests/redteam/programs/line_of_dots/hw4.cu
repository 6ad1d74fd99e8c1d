// The line table of its host code has a file name of 200,000 times "./", which the grader matched in quadratic time.
// expect: runtime_error; within 60 s
#include "hostile.h"

__global__ void kernel(float* to) { to[0] = 1; }

extern "C" void copy_too_much(void* to, void* from);

int main(int, char** argv) {
    float* data;
    cudaMalloc(&data, 64);
    kernel<<<1, 1>>>(data);
    copy_too_much(data, argv);
}
