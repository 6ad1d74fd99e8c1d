// B is read as if it were stored column after column.
// expect: wrong_answer on most: is read with rows and columns exchanged
#define B_AT(i, column) b[size_t(column) * k + (i)]
#include "product.cuh"
