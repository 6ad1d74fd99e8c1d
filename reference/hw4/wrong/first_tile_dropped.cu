// The loop over tiles of keys starts one tile late.
// expect: wrong_answer on all: ): 0–31 | ): 0 | O is summed without
#define FIRST_TILE 1
#include "wrong.cuh"
