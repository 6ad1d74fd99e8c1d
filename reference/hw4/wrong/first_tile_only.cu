// The loop over tiles of keys runs once.
// expect: wrong_answer on all: ): 32–127 | ): 1–127 | O is summed without
#define TILES 1
#include "wrong.cuh"
