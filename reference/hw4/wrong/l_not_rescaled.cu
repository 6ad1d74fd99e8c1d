// l is not rescaled when the running maximum grows.
// expect: wrong_answer on all: l (the running sum) is not
#define RESCALED_L(value) (value)
#include "wrong.cuh"
