// The header's scale is ignored for 1 / sqrt(d).
// expect: wrong_answer on most: times as fast as Q Kᵀ
#define SCALE (1.0f / sqrtf(float(d)))
#include "attention.cuh"
