// Weights are powers of two, without the factor log2(e) in the scores.
// expect: wrong_answer on all: 2 is the base
#define WEIGHT(s, m) exp2f((s) - (m))
#define RESCALED_SUM(value) ((value) * exp2f(m - top))
#define RESCALED_L(value) ((value) * exp2f(m - top))
#include "wrong.cuh"
