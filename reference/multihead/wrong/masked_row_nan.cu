// Keys come last to first: a row sees none of the first ones, and -inf - -inf is NaN.
// expect: wrong_answer on most: NaN
#define TILE_ORDER(step, tiles) ((tiles) - 1 - (step))
#include "attention.cuh"
