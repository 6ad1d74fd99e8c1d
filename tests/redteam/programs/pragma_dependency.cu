// Asks the preprocessor how old the secret and its neighbours are.
// expect: compile_error
#include "hostile.h"
#pragma GCC dependency "/tmp/redteam-canary/secret"
#pragma GCC dependency "../alice/hw4.cu"

int main(int, char** argv) { write_zeros(argv[1], argv[2]); }
