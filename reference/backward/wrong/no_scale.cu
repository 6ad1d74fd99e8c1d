// Scores are not divided by sqrt(d) in the forward pass.
// expect: wrong_answer on most: the scale is missing
#define FORWARD_SCALE 1.0f
#include "gradient.cuh"
