// Only half of the keys are summed over.
// expect: wrong_answer on most: is summed without | No row gives any weight to keys
#define SUMMED(n) ((n) / 2)
#include "attention.cuh"
