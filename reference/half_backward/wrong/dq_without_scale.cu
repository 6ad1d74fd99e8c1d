// dQ = dS K.
// expect: wrong_answer on most: dQ matches a gradient without the scale
#define DQ_SCALE(h) 1.0f
#include "gradient.cuh"
