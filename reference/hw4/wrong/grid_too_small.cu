// One block of rows too few is launched.
// expect: wrong_answer on all: exactly 0
#define GRID dim3(n / kRows - 1, batches)
#include "wrong.cuh"
