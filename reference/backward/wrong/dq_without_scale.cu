// dQ lacks the factor 1 / sqrt(d).
// expect: wrong_answer on most: times what it should be
#define DQ_SCALE 1.0f
#include "gradient.cuh"
