// The loop over tiles of keys ends one tile early.
// expect: wrong_answer on all: ignores the last 32 keys
#define TILES (n / kTile - 1)
#include "wrong.cuh"
