// l keeps what was added relative to an older maximum.
// expect: wrong_answer on most: when the running maximum grows
#define RESCALE_L(x) 1.0f
#include "attention.cuh"
