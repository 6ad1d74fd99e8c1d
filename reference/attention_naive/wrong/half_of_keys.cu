// Only half of the keys are summed over.
// expect: wrong_answer on most: is summed without | have no weight in any row
#define SUMMED(n) ((n) / 2)
#include "attention.cuh"
