// The log-sum-exp is kept in half precision.
// expect: wrong_answer on most: lost precision
#define LSE(x) in_half(x, h.type)
#include "gradient.cuh"
