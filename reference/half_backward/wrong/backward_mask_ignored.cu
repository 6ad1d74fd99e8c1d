// The backward pass computes P without the causal mask.
// expect: wrong_answer on most: in the backward pass attention without the causal mask
#define CAUSAL(h) 0
#include "gradient.cuh"
