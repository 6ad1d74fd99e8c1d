// The threads do not wait until the tile is loaded.
// expect: wrong_answer on all: __syncthreads | race | barrier
// tiles only
#define LOADED
#include "wrong.cuh"
