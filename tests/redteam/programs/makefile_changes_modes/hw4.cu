// Its Makefile changes the mode and the time of a file of the user's, which no later grading could read.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) { write_zeros(argv[1], argv[2]); }
