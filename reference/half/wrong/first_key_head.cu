// All query heads read key head 0.
// expect: wrong_answer on most: all read key head 0
#define KEY_HEAD(head, h) 0
#include "attention.cuh"
