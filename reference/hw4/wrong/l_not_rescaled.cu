// l is not rescaled when the running maximum grows.
// expect: wrong_answer on all: l so far must be multiplied
#define RESCALED_L(value) (value)
#include "wrong.cuh"
