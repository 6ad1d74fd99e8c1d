// The scale is applied to Q and to the scores.
// expect: wrong_answer on most: the scale is applied twice
#define SCALE(h) ((h).scale * (h).scale)
#include "attention.cuh"
