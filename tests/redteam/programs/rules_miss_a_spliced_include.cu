// Includes a file of the machine over two lines, which the source rules forbid.
// expect: compile_error; under rules
#include "hostile.h"
#if 0
#endif
#in\
clude "/usr/include/stdio.h"

int main(int, char** argv) { write_zeros(argv[1], argv[2]); }
