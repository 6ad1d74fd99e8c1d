// dQ = dS K.
// expect: wrong_answer on most: Every wrong row is the right one times
#define DQ_SCALE(h) 1.0f
#include "gradient.cuh"
