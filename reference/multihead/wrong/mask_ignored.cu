// The mask is not applied.
// expect: wrong_answer on most: without the mask
#define HIDDEN(key, row) false
#include "attention.cuh"
