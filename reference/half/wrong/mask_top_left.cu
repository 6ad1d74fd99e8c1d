// The mask is aligned to the top left: query i stands at key i.
// expect: wrong_answer on most: and should use keys
#define PLACE(i, h) (i)
#include "attention.cuh"
