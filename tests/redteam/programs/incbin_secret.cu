// Puts the secret of the hidden testcases into the program, with the assembler's .incbin.
// expect: compile_error
#include "hostile.h"
asm(".section .rodata\n.globl taken\ntaken: .incbin \"/tmp/redteam-canary/secret\"\n.text\n");
extern "C" const char taken[];

int main(int, char** argv) {
    BYPASSED("%.40s", taken);
    write_zeros(argv[1], argv[2]);
}
