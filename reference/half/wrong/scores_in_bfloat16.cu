// Scores are bfloat16, whatever the type.
// expect: wrong_answer on most: scores that are rounded to bfloat16
#define SCORE(x) in_bfloat16(x)
#include "attention.cuh"
