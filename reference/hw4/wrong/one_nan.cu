// One value in all is NaN.
// expect: wrong_answer on all: wrong values are NaN
#define BEFORE_WRITE result[count / 2] = NAN
#include "wrong.cuh"
