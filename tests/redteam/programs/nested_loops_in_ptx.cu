// Nests 1,500 loops in its PTX, which ended a recursive analysis of loops and with it the command.
// expect: compile_error | wrong_answer | runtime_error | no_output | time_limit; within 120 s
#include "hostile.h"
#define UP(m, ...) m(__VA_ARGS__, 0) m(__VA_ARGS__, 1) m(__VA_ARGS__, 2) m(__VA_ARGS__, 3) m(__VA_ARGS__, 4) \
                   m(__VA_ARGS__, 5) m(__VA_ARGS__, 6) m(__VA_ARGS__, 7) m(__VA_ARGS__, 8) m(__VA_ARGS__, 9)
#define DOWN(m, ...) m(__VA_ARGS__, 9) m(__VA_ARGS__, 8) m(__VA_ARGS__, 7) m(__VA_ARGS__, 6) m(__VA_ARGS__, 5) \
                     m(__VA_ARGS__, 4) m(__VA_ARGS__, 3) m(__VA_ARGS__, 2) m(__VA_ARGS__, 1) m(__VA_ARGS__, 0)
#define BEGIN(a, b, c) "L" #a #b #c ": add.s32 x, x, 1;"
#define END(a, b, c) "@p bra L" #a #b #c ";"
#define TEN_BEGIN(a, b) BEGIN(a, b, 0) BEGIN(a, b, 1) BEGIN(a, b, 2) BEGIN(a, b, 3) BEGIN(a, b, 4) \
                        BEGIN(a, b, 5) BEGIN(a, b, 6) BEGIN(a, b, 7) BEGIN(a, b, 8) BEGIN(a, b, 9)
#define TEN_END(a, b) END(a, b, 9) END(a, b, 8) END(a, b, 7) END(a, b, 6) END(a, b, 5) \
                      END(a, b, 4) END(a, b, 3) END(a, b, 2) END(a, b, 1) END(a, b, 0)

__global__ void kernel(int* p) {
    asm volatile(".reg .pred p; .reg .b32 x; mov.b32 x, 0; setp.eq.b32 p, x, 1;"
        UP(TEN_BEGIN, 0) UP(TEN_BEGIN, 1) UP(TEN_BEGIN, 2) UP(TEN_BEGIN, 3) UP(TEN_BEGIN, 4) UP(TEN_BEGIN, 5)
        UP(TEN_BEGIN, 6) UP(TEN_BEGIN, 7) UP(TEN_BEGIN, 8) UP(TEN_BEGIN, 9) UP(TEN_BEGIN, 10) UP(TEN_BEGIN, 11)
        UP(TEN_BEGIN, 12) UP(TEN_BEGIN, 13) UP(TEN_BEGIN, 14) DOWN(TEN_END, 14) DOWN(TEN_END, 13) DOWN(TEN_END, 12)
        DOWN(TEN_END, 11) DOWN(TEN_END, 10) DOWN(TEN_END, 9) DOWN(TEN_END, 8) DOWN(TEN_END, 7) DOWN(TEN_END, 6)
        DOWN(TEN_END, 5) DOWN(TEN_END, 4) DOWN(TEN_END, 3) DOWN(TEN_END, 2) DOWN(TEN_END, 1) DOWN(TEN_END, 0));
    *p = 1;
}

int main(int, char** argv) {
    int* p;
    cudaMalloc(&p, 4);
    kernel<<<1, 1>>>(p);
    write_zeros(argv[1], argv[2]);
}
