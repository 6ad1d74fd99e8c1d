// The threads do not wait until the tile is loaded.
// expect: wrong_answer on all: __syncthreads | race | barrier
#define LOADED
#include "wrong.cuh"
