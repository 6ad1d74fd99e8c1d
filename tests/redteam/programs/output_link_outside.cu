// The output is a symbolic link to a file outside, of which it hopes that the grader can read it.
// expect: no_output
#include "hostile.h"

int main(int, char** argv) {
    symlink("/tmp/redteam-canary/answer", argv[2]);
    return 0;
}
