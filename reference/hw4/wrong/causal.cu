// A row looks at no key after its own number.
// expect: wrong_answer on all: causal | O is summed without
#define USED(key) ((key) <= row)
#include "wrong.cuh"
