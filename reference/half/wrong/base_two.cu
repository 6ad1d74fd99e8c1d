// exp2 without the factor log2(e).
// expect: wrong_answer on most: powers of 2 instead of e
#define EXP(x) exp2f(x)
#include "attention.cuh"
