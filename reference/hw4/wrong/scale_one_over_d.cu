// Scores are divided by d instead of sqrt(d).
// expect: wrong_answer on all: with the scale 1/d
#define SCALE (1.0f / float(d))
#include "wrong.cuh"
