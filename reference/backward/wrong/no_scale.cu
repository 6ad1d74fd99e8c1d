// Scores are not divided by sqrt(d) in the forward pass.
// expect: wrong_answer on most: without the scale
#define FORWARD_SCALE 1.0f
#include "gradient.cuh"
