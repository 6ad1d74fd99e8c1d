// Every key has the same weight: O is the mean of V.
// expect: wrong_answer on all: every key has the same weight
#define WEIGHT(s, m) 1.0f
#define RESCALED_SUM(value) (value)
#define RESCALED_L(value) (value)
#include "wrong.cuh"
