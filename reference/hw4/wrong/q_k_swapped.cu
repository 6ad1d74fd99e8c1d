// Q and K are read in the wrong order.
// expect: wrong_answer on all: Q and K exchanged | K is used where Q should be
#define ORDER k, q, v
#include "wrong.cuh"
