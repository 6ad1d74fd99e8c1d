// Query i sees one key too many.
// expect: wrong_answer on most: off by one: the last key that query i sees
#define AHEAD 1
#include "attention.cuh"
