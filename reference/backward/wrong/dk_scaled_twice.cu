// dK has the factor 1 / d.
// expect: wrong_answer on most: the scale applied twice
#define DK_SCALE (scale * scale)
#include "gradient.cuh"
