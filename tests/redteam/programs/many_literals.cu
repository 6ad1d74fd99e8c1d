// Has 70,000 string literals, whose names made one command of the build longer than the kernel takes.
// expect: wrong_answer | compile_error; within 300 s
#include "hostile.h"
#define TEXT_(n) "literal " #n
#define TEXT(n) TEXT_(n)
#define ONE TEXT(__COUNTER__),
#define TEN ONE ONE ONE ONE ONE ONE ONE ONE ONE ONE
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define THOUSAND HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED
#define MANY THOUSAND THOUSAND THOUSAND THOUSAND THOUSAND THOUSAND THOUSAND THOUSAND THOUSAND THOUSAND

__device__ const char* texts[] = {MANY MANY MANY MANY MANY MANY MANY};
__global__ void kernel(int* p) { *p = texts[*p][8]; }

int main(int, char** argv) {
    int* p;
    cudaMalloc(&p, sizeof *p);
    cudaMemset(p, 0, sizeof *p);
    kernel<<<1, 1>>>(p);
    write_zeros(argv[1], argv[2]);
}
