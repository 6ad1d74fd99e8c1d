// dK has the factor 1 / d.
// expect: wrong_answer on most: 1/√d is applied twice
#define DK_SCALE (scale * scale)
#include "gradient.cuh"
