// The last key of all is skipped.
// expect: wrong_answer on all: ignores the last key
#define USED(key) ((key) != n - 1)
#include "wrong.cuh"
