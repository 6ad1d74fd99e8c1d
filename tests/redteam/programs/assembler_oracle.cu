// Has the assembler measure files, and fail in another way for each size: its messages are the answer.
// expect: compile_error | wrong_answer
#include "hostile.h"
#define MEASURE(label, path) \
    asm(".pushsection .rodata\n" label "_a: .incbin \"" path "\"\n" label "_b:\n.if (" label "_b - " label "_a) > 8\n.error \"CANARY: " path " is there\"\n.endif\n.popsection")
MEASURE("secret", "/tmp/redteam-canary/secret");
MEASURE("shadow", "/etc/shadow");
MEASURE("alice", "../alice/hw4.cu");

int main(int, char** argv) { write_zeros(argv[1], argv[2]); }
