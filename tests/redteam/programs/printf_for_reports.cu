// A kernel prints escapes, HTML and formulas, sixty thousand lines of it.
// expect: passed | runtime_error
#include "hostile.h"
__global__ void say() { printf("\033[2J<script>alert(%d)</script>=HYPERLINK(\"x\")|`%s`\r\b\n", threadIdx.x, "\xff\xfe"); }

int main(int, char** argv) {
    for (int i = 0; i < 60; ++i) say<<<8, 128>>>(), cudaDeviceSynchronize();
    write_right(argv[1], argv[2]);
}
