// Puts the compiler's environment and process into the program, with the assembler's .incbin.
// expect: wrong_answer | compile_error
#include "hostile.h"
asm(".section .rodata\n.globl taken\n.globl taken_end\ntaken: .incbin \"/proc/self/environ\"\n"
    ".incbin \"/proc/self/mountinfo\"\ntaken_end: .byte 0\n.text\n");
extern "C" const char taken[], taken_end[];

int main(int, char** argv) {
    const std::string text(taken, taken_end);
    if (text.find("CANARY") != std::string::npos || text.find("SECRET") != std::string::npos) BYPASSED("the environment");
    if (text.find(".out") != std::string::npos) BYPASSED("the compiler's mounts");
    write_zeros(argv[1], argv[2]);
}
