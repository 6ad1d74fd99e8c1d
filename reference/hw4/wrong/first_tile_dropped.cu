// The loop over tiles of keys starts one tile late.
// expect: wrong_answer on all: Keys 0–31 ( | Keys 0 ( | O is summed without
#define FIRST_TILE 1
#include "wrong.cuh"
