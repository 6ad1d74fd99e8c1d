// The scale is in dS and in dK again.
// expect: wrong_answer on most: times what it should be
#define DK_SCALE(h) ((h).scale * (h).scale)
#include "gradient.cuh"
