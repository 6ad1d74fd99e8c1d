// Keys that fill up the last tile of 64 count with a score of 0.
// expect: wrong_answer on most: is the right one times a different factor
#define PADDING(keys) ((64 - (keys) % 64) % 64)
#include "attention.cuh"
