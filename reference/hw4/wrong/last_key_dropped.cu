// The last key of all is skipped.
// expect: wrong_answer on all: ): 127 | O is summed without 1 of
#define USED(key) ((key) != n - 1)
#include "wrong.cuh"
