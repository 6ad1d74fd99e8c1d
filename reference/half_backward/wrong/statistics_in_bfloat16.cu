// The log-sum-exp is kept in bfloat16 between the passes.
// expect: wrong_answer on most: lost precision
#define LSE(x) in_bfloat16(x)
#include "gradient.cuh"
