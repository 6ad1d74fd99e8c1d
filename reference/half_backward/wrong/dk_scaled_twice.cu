// The scale is in dS and in dK again.
// expect: wrong_answer on most: Every wrong row is the right one times
#define DK_SCALE(h) ((h).scale * (h).scale)
#include "gradient.cuh"
