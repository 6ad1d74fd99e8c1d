// Has the assembler include the secret, whose messages then quote it.
// expect: compile_error
#include "hostile.h"
asm(".include \"/tmp/redteam-canary/secret\"");

int main(int, char** argv) { write_zeros(argv[1], argv[2]); }
