// dK has the factor 1 / d.
// expect: wrong_answer on most: times what it should be
#define DK_SCALE (scale * scale)
#include "gradient.cuh"
