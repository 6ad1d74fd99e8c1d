// O is summed up in half precision.
// expect: wrong_answer on most: O summed up in half precision
#define SUM(x) in_half(x, type)
#include "attention.cuh"
