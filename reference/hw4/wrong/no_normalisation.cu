// The sum is not divided by l.
// expect: wrong_answer on all: without the division
#define TOTAL 1.0f
#include "wrong.cuh"
