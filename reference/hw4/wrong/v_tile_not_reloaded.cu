// The tile of V is always the first one.
// expect: wrong_answer on all: is multiplied by row 0 of V | indices do not belong together
#define V_FROM 0
#include "wrong.cuh"
