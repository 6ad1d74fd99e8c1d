// Opens half a million comments in its PTX, each of which a careless parser follows to the end of the text.
// expect: compile_error; within 60 s
#include "hostile.h"
#define FOUR(x) x x x x
#define MANY(x) FOUR(FOUR(FOUR(FOUR(FOUR(FOUR(FOUR(FOUR(FOUR(x)))))))))  // 262,144

__global__ void kernel() { asm volatile(MANY("/*") MANY("/*")); }

int main(int, char** argv) {
    kernel<<<1, 1>>>();
    write_zeros(argv[1], argv[2]);
}
