// Neither the sums nor l are rescaled when the running maximum grows.
// expect: wrong_answer on all: so far must be multiplied
#define RESCALED_SUM(value) (value)
#define RESCALED_L(value) (value)
#include "wrong.cuh"
