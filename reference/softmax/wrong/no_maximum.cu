// The maximum is not taken off: exp(89) is infinite.
// expect: wrong_answer on most: NaN
#define FIRST_MAXIMUM 0.0f
#define NEW_MAXIMUM(most, value) (most)
#include "softmax.cuh"
