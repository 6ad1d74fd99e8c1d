// The last product of every sum is left out.
// expect: wrong_answer on most: differ by more than
#define A_AT(row, i) ((i) < k - 1 ? a[size_t(row) * k + (i)] : 0.0f)
#include "product.cuh"
