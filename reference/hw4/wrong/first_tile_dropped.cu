// The loop over tiles of keys starts one tile late.
// expect: wrong_answer on all: ignores the first 32 keys
#define FIRST_TILE 1
#include "wrong.cuh"
