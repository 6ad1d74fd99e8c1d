// Keys before the window count.
// expect: wrong_answer on most: without the window
#define WINDOW(h) -1
#include "attention.cuh"
