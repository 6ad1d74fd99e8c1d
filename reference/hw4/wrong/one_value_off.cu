// One value in all is off by 6e-3: a little more than the tolerance.
// expect: wrong_answer on all: 1 of | only row
#define BEFORE_WRITE result[count / 2] += 6e-3f
#include "wrong.cuh"
