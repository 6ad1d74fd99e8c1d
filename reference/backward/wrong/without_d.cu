// dS = P * dP: the row's sum of dO * O is not subtracted.
// expect: wrong_answer on most: is subtracted from dP
#define D_OF(dot) 0.0f
#include "gradient.cuh"
