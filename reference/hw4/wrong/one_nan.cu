// One value in all is NaN.
// expect: wrong_answer on all: NaN, in 1 batch
#define BEFORE_WRITE result[count / 2] = NAN
#include "wrong.cuh"
