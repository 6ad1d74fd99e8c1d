// Is a program of 200 MB, most of it one number.
// expect: wrong_answer | compile_error | runtime_error
#include "hostile.h"
asm(".pushsection .data\n.fill 200000000, 1, 7\n.popsection");

int main(int, char** argv) { write_zeros(argv[1], argv[2]); }
