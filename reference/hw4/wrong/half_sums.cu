// The sums are kept in half precision.
// expect: wrong_answer on all: precision
#define SUM_TYPE __half
#include "wrong.cuh"
