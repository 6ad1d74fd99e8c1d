// Every 16-bit number is taken for a float16.
// expect: wrong_answer on most: no cause is named
#define TYPE(h) ((h).type == kBfloat16 ? int(kFloat16) : (h).type)
#include "attention.cuh"
