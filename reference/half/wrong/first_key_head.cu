// All query heads read key head 0.
// expect: wrong_answer on most: look at the offset per
#define KEY_HEAD(head, h) 0
#include "attention.cuh"
