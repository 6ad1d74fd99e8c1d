// Kᵀ is a copy of K: the product reads its rows as if they were columns.
// expect: wrong_answer on most: is read with rows and columns exchanged
#define KT_INDEX(x, key) (size_t(key) * d + (x))
#include "attention.cuh"
