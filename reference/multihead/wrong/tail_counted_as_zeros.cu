// Keys beyond the last have a score of 0, not of -inf.
// expect: wrong_answer on most: a key that does not exist, or was not loaded | times what it should be
#define BEYOND_THE_END 0.0f
#include "attention.cuh"
