// O is written column by column.
// expect: wrong_answer on all: is stored as
#define TARGET (size_t(x) * n + row)
#include "wrong.cuh"
