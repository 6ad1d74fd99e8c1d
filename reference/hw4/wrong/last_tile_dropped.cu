// The loop over tiles of keys ends one tile early.
// expect: wrong_answer on all: ): 96–127 | ): 127 | O is summed without
#define TILES (n / kTile - 1)
#include "wrong.cuh"
