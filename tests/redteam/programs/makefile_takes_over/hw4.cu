// Its Makefile asks for a compiler, a specs file, a plugin and libraries of its own.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
#ifdef TAKEN_OVER
    BYPASSED("a flag of ours was honoured");
#endif
    write_zeros(argv[1], argv[2]);
}
