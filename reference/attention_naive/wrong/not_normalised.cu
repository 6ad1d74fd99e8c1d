// The division by the sum is missing.
// expect: wrong_answer on most: exponentials without the division by their sum
#define DIVISOR 1.0f
#include "attention.cuh"
