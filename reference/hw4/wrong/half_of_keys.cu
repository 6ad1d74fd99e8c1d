// Only the first half of the keys is looked at.
// expect: wrong_answer on all: ): 64–127 | O is summed without 64
#define TILES (n / kTile / 2)
#include "wrong.cuh"
