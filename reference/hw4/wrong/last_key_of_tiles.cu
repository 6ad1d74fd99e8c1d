// The last key of every tile is skipped.
// expect: wrong_answer on all: last key of every tile of 32
// tiles only
#define USED(key) ((key) % kTile != kTile - 1)
#include "wrong.cuh"
