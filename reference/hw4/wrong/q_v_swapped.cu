// Q and V are read in the wrong order.
// expect: wrong_answer on all: Q and V exchanged | V is used where Q should be
#define ORDER v, k, q
#include "wrong.cuh"
