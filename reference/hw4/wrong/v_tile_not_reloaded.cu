// The tile of V is always the first one.
// expect: wrong_answer on all: first 32 rows of V | same row of V
#define V_FROM 0
#include "wrong.cuh"
