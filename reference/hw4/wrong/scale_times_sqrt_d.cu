// Scores are multiplied by sqrt(d) instead of divided.
// expect: wrong_answer on all: multiplied by √d
#define SCALE sqrtf(float(d))
#include "wrong.cuh"
