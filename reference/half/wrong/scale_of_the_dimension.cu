// 1 / sqrt(d) whatever the header says.
// expect: wrong_answer on most: times as fast as Q Kᵀ
#define SCALE(h) (1.0f / sqrtf(float((h).d)))
#include "attention.cuh"
