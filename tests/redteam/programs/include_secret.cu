// Includes the secret of the hidden testcases, so that the compiler's messages tell it.
// expect: compile_error
#include "hostile.h"
#include "/tmp/redteam-canary/secret"

int main(int, char** argv) { write_zeros(argv[1], argv[2]); }
