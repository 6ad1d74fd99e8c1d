// Scores are multiplied by sqrt(d) instead of divided.
// expect: wrong_answer on all: divided by the scale
#define SCALE sqrtf(float(d))
#include "wrong.cuh"
