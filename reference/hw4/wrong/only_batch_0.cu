// Only the first batch is computed; the rest of the output is 0.
// expect: wrong_answer on all: only batch 0 is right | this part of the output is never written
#define GRID dim3(n / kRows, 1)
#include "wrong.cuh"
