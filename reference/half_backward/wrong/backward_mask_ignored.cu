// The backward pass computes P without the causal mask.
// expect: wrong_answer on most: and should use keys
#define CAUSAL(h) 0
#include "gradient.cuh"
