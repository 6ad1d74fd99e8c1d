// Scores are not divided by sqrt(d).
// expect: wrong_answer on most: the scale is missing
#define SCALE(d) 1.0f
#include "attention.cuh"
