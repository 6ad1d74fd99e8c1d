// The running maximum starts at +infinity, so every weight is 0 and O is 0/0.
// expect: wrong_answer on all: start it at −INFINITY | becomes NaN
#define M_START INFINITY
#include "wrong.cuh"
