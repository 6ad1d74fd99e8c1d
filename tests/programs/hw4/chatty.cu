// Prints 8 MB to stdout and 8 MB to stderr; the output is right.
#define BEFORE_MAIN                                                                       \
    for (int line = 0; line < 128 * 1024; ++line) {                                       \
        std::fprintf(stdout, "%-62d\n", line);                                            \
        std::fprintf(stderr, "%-62d\n", line);                                            \
    }
#include "attention.cuh"
