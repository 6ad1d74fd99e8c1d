// The loop over tiles of keys starts one tile late.
// expect: wrong_answer on all: first 32 keys | first key
#define FIRST_TILE 1
#include "wrong.cuh"
