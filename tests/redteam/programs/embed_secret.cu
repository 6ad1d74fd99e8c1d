// Puts the secret into the program with #embed, where the compiler has it.
// expect: compile_error | wrong_answer
#include "hostile.h"
#if defined(__has_embed)
static const unsigned char taken[] = {
#embed "/tmp/redteam-canary/secret"
};
#define TAKEN 1
#else
#define TAKEN 0
#endif

int main(int, char** argv) {
    if (TAKEN) BYPASSED("#embed");
    write_zeros(argv[1], argv[2]);
}
