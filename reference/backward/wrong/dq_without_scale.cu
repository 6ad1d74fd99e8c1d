// dQ lacks the factor 1 / sqrt(d).
// expect: wrong_answer on most: dQ matches a gradient without the scale
#define DQ_SCALE 1.0f
#include "gradient.cuh"
