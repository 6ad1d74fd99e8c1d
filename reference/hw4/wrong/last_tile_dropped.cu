// The loop over tiles of keys ends one tile early.
// expect: wrong_answer on all: last 32 keys | last key
#define TILES (n / kTile - 1)
#include "wrong.cuh"
