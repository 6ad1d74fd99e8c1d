// Rows go to the place of another row of their block.
// expect: wrong_answer on all: is stored as row
#define TARGET (size_t(row ^ (kRows - 1)) * d + x)
#include "wrong.cuh"
