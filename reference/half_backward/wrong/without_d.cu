// dS = P dP.
// expect: wrong_answer on most: D, the row's sum of dO ∘ O, is not subtracted
#define D_OF(dot) 0.0f
#include "gradient.cuh"
