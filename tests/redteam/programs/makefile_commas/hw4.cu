// Its flags are lists with commas, each with something harmful after something harmless.
// expect: wrong_answer | compile_error
#include "hostile.h"
#if defined(TAKEN_OVER) || __has_include(<secret>) || __has_include(<tmp/redteam-canary/secret>)
#define SEEN 1
#else
#define SEEN 0
#endif

int main(int, char** argv) {
    if (SEEN) BYPASSED("what stands after a comma was honoured");
    write_zeros(argv[1], argv[2]);
}
