// Its Makefile passes the grader's environment on to the compiler.
// expect: wrong_answer
#include "hostile.h"
#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)

int main(int, char** argv) {
    if (strlen(TEXT_OF(SECRET)) > 6 || strstr(TEXT_OF(PLACE), "/root")) BYPASSED("%s %s", TEXT_OF(SECRET), TEXT_OF(PLACE));
    write_zeros(argv[1], argv[2]);
}
