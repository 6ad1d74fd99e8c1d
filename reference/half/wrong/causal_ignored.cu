// Every query sees all keys of its window.
// expect: wrong_answer on most: without the causal mask
#define CAUSAL(h) 0
#include "attention.cuh"
