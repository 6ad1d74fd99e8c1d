// Keys before the window count.
// expect: wrong_answer on most: and should use keys
#define WINDOW(h) -1
#include "attention.cuh"
