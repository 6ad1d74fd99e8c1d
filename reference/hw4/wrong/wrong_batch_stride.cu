// The next batch is looked for n * d values on, instead of 3 * n * d.
// expect: wrong_answer on all: N·d values apart | with K and V of batch
#define INPUT_OF(batch) (size_t(batch) * n * d)
#include "wrong.cuh"
