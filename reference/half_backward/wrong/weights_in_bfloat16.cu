// P is bfloat16 where it is multiplied with dO, whatever the type.
// expect: wrong_answer on most: lost precision
#define WEIGHT(p) in_bfloat16(p)
#include "gradient.cuh"
