// dS is bfloat16, whatever the type.
// expect: wrong_answer on most: lost precision
#define SLOPE(x) in_bfloat16(x)
#include "gradient.cuh"
