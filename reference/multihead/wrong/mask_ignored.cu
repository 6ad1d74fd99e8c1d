// The mask is not applied.
// expect: wrong_answer on most: which the mask hides
#define HIDDEN(key, row) false
#include "attention.cuh"
