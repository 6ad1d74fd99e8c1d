// 0 / 0 for a query that sees nothing.
// expect: wrong_answer on most: NaN
#define INVERSE(l) (1.0f / (l))
#include "attention.cuh"
