// Each row of O is computed for the next row of Q.
// expect: wrong_answer on all: is stored as row
#define QUERY ((row + 1) % n)
#include "wrong.cuh"
