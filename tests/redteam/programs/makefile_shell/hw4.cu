// Its Makefile runs commands when it is only read: they look for the secret and for others' work, and leave traces.
// expect: wrong_answer
#include "hostile.h"
#ifndef SECRET
#define SECRET 0
#endif
#if __has_include("stolen.h")
#define STOLEN 1
#else
#define STOLEN 0
#endif

int main(int, char** argv) {
    if (SECRET || STOLEN) BYPASSED("the Makefile reached out");
    write_zeros(argv[1], argv[2]);
}
