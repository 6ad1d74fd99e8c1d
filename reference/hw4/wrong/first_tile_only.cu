// The loop over tiles of keys runs once.
// expect: wrong_answer on all: first 32 keys only | first key only
#define TILES 1
#include "wrong.cuh"
