// The scores' sign is wrong: the least similar key weighs most.
// expect: wrong_answer on all: sign is reversed
#define SCALE (-1.0f / sqrtf(float(d)))
#include "wrong.cuh"
