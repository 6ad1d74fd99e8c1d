// Every batch is given the first one's input.
// expect: wrong_answer on most: is stored as | hold the output of batch 0
#define INPUT_OF(batch) 0 * (batch)
#include "attention.cuh"
