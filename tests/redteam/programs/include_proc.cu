// Includes the compiler's environment and command line, and those of process 1.
// expect: compile_error | wrong_answer
#include "hostile.h"
#include "/proc/self/environ"
#include "/proc/self/cmdline"
#include "/proc/1/environ"
#include "/proc/1/cmdline"

int main(int, char** argv) { write_zeros(argv[1], argv[2]); }
