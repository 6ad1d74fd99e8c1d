// The loop over tiles runs K / 32 times, rounded down.
// expect: wrong_answer on most: K is not a multiple of the tile
#define LAST_TILE(k) ((k) / kTile * kTile)
#include "product.cuh"
