// Scores are summed up in half precision.
// expect: wrong_answer on most: Q·K summed up in half precision
#define PRODUCT(x) in_half(x, type)
#include "attention.cuh"
