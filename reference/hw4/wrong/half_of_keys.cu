// Only the first half of the keys is looked at.
// expect: wrong_answer on all: first half of the keys
#define TILES (n / kTile / 2)
#include "wrong.cuh"
