// exp of the score itself, in half precision: it overflows.
// expect: wrong_answer on most: NaN
#define MAXIMUM(m, s) 0.0f
#define WEIGHT(x) in_half(x, type)
#include "attention.cuh"
