// The sums are not rescaled when the running maximum grows.
// expect: wrong_answer on all: O so far must be multiplied
#define RESCALED_SUM(value) (value)
#include "wrong.cuh"
