// The scale is in dS and in dK again.
// expect: wrong_answer on most: dK matches a gradient with the scale applied twice
#define DK_SCALE(h) ((h).scale * (h).scale)
#include "gradient.cuh"
