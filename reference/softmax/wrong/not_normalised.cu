// The division by the sum is missing.
// expect: wrong_answer on most: without the division by their sum
#define DIVISOR 1.0f
#include "softmax.cuh"
