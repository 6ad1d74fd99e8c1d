// K and V are read in the wrong order.
// expect: wrong_answer on all: K and V exchanged | V is used where K should be
#define ORDER q, v, k
#include "wrong.cuh"
