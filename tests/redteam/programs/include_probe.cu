// Asks the preprocessor which files exist: the course's, other people's, the machine's.
// expect: wrong_answer | compile_error
#include "hostile.h"
#if __has_include("/tmp/redteam-canary/secret") || __has_include("/etc/shadow") || __has_include("/etc/hostname") || \
    __has_include("../alice/hw4.cu") || __has_include("../../alice/hw4.cu") || __has_include("/root/.profile")
#define SEEN 1
#else
#define SEEN 0
#endif

int main(int, char** argv) {
    if (SEEN) BYPASSED("the compiler sees files outside");
    write_zeros(argv[1], argv[2]);
}
