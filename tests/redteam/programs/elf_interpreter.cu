// Names an interpreter of its own in its ELF header, which the kernel would start in its place.
// expect: runtime_error | no_output | compile_error | wrong_answer
#include "hostile.h"
__attribute__((section(".interp"), used)) static const char interpreter[] = "/tmp/redteam-canary/secret";

int main(int, char** argv) { write_zeros(argv[1], argv[2]); }
