// Scores are not multiplied by 1/sqrt(d).
// expect: wrong_answer on all: the scale is missing
#define SCALE 1.0f
#include "wrong.cuh"
