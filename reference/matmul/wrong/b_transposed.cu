// B is read as if it were stored column after column.
// expect: wrong_answer on most: B is read column by column
#define B_AT(i, column) b[size_t(column) * k + (i)]
#include "product.cuh"
