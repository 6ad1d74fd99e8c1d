// dS = P dP.
// expect: wrong_answer on most: without the subtraction of D
#define D_OF(dot) 0.0f
#include "gradient.cuh"
