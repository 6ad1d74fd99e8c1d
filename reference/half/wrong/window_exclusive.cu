// The first key of the window does not count.
// expect: wrong_answer on most: and should use keys
#define WINDOW(h) ((h).window > 0 ? (h).window - 1 : (h).window)
#include "attention.cuh"
