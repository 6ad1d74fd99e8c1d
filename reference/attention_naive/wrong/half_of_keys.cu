// Only half of the keys are summed over.
// expect: wrong_answer on most: first half of the keys
#define SUMMED(n) ((n) / 2)
#include "attention.cuh"
