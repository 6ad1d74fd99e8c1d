// dQ = dS K.
// expect: wrong_answer on most: times what it should be
#define DQ_SCALE(h) 1.0f
#include "gradient.cuh"
