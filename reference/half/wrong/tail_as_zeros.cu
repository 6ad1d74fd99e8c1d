// Keys that fill up the last tile of 64 count with a score of 0.
// expect: wrong_answer on most: add up to | times what it should be
#define PADDING(keys) ((64 - (keys) % 64) % 64)
#include "attention.cuh"
