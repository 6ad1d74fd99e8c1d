// The columns beyond the last whole group of 32 are not in the sum.
// expect: wrong_answer on most: is summed without
#define SUMMED (columns >= 32 ? columns / 32 * 32 : columns)
#include "softmax.cuh"
