// Its Makefile's shell makes a folder named like a command, and a link to it that -I leads through; it prints CANARY.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) { write_zeros(argv[1], argv[2]); }
