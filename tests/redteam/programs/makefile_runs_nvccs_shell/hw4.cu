// Gives nvcc macros with commands in them: nvcc starts its tools through a shell, which would run them.
// expect: wrong_answer
#include "hostile.h"
#if __has_include("taken.h")
int taken = 1;
#else
int taken = 0;
#endif

int main(int, char** argv) {
    if (taken) BYPASSED("a command ran while it was compiled");
    write_zeros(argv[1], argv[2]);
}
