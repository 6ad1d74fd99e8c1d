// Exponentials are bfloat16, whatever the type.
// expect: wrong_answer on most: probabilities that are rounded to bfloat16
#define WEIGHT(x) in_bfloat16(x)
#include "attention.cuh"
