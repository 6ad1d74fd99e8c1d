// B is read as if it were stored column after column.
// The grader says: B is read column by column
#define B_AT(i, column) b[size_t(column) * k + (i)]
#include "product.cuh"
