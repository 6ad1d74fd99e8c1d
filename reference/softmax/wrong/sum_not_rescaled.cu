// The running sum is not rescaled when the maximum grows.
// expect: wrong_answer on most: must be multiplied by exp(m_old − m_new) | is missing in
#define RESCALE(old, new) 1.0f
#include "softmax.cuh"
