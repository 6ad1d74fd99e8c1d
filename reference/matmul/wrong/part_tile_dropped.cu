// The loop over tiles runs K / 32 times, rounded down.
// expect: wrong_answer on most: is summed without
#define LAST_TILE(k) ((k) / kTile * kTile)
#include "product.cuh"
