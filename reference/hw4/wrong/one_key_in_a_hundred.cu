// Every hundredth key is skipped.
// expect: wrong_answer on all: ): 99 | O is summed without 1 of
#define USED(key) ((key) % 100 != 99)
#include "wrong.cuh"
