// The last product of every sum is left out.
// expect: wrong_answer on most: is summed without
#define A_AT(row, i) ((i) < k - 1 ? a[size_t(row) * k + (i)] : 0.0f)
#include "product.cuh"
