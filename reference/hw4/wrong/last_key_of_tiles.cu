// The last key of every tile is skipped.
// expect: wrong_answer on all: ): 31, 63, 95, 127 | O is summed without 4 of
// tiles only
#define USED(key) ((key) % kTile != kTile - 1)
#include "wrong.cuh"
