// l is summed up in half precision.
// expect: wrong_answer on most: kept in half precision
#define TOTAL(x) in_half(x, type)
#include "attention.cuh"
