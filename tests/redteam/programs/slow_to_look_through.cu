// Is a megabyte of calls, quotes and brackets once preprocessed, over which a careless scanner goes again and again.
// expect: passed | compile_error; under rules; within 60 s
#include "hostile.h"

#define TEN(x) x x x x x x x x x x
#define THOUSAND(x) TEN(TEN(TEN(x)))
static const char kText[] = TEN(THOUSAND("system ( popen ( \\\" /* \\\\\" // R\"(( [[[[[[ {{{{{{ <<<<<< # include \" "));
static_assert(sizeof kText > 1, TEN(TEN("system ")));

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    return kText[0] == 0;
}
