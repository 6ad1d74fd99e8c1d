// The mask is aligned to the top left: query i stands at key i.
// expect: wrong_answer on most: aligned to the top left
#define PLACE(i, h) (i)
#include "attention.cuh"
