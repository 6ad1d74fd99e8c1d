// Every query sees all keys of its window.
// expect: wrong_answer on most: and should use keys
#define CAUSAL(h) 0
#include "attention.cuh"
