// Scores are not multiplied by 1/sqrt(d).
// expect: wrong_answer on all: without the scale
#define SCALE 1.0f
#include "wrong.cuh"
