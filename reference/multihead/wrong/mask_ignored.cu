// The mask is not applied.
// expect: wrong_answer on most: that the mask hides
#define HIDDEN(key, row) false
#include "attention.cuh"
