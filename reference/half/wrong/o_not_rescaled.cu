// O keeps what was added relative to an older maximum.
// expect: wrong_answer on most: does not rescale O when
#define RESCALE_O(x) 1.0f
#include "attention.cuh"
