// exp2 without the factor log2(e).
// expect: wrong_answer on most: 2 is the base, not e
#define EXP(x) exp2f(x)
#include "attention.cuh"
