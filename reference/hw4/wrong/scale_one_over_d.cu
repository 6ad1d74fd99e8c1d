// Scores are divided by d instead of sqrt(d).
// expect: wrong_answer on all: the scale is applied twice
#define SCALE (1.0f / float(d))
#include "wrong.cuh"
