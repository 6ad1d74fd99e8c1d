// The key before the window counts.
// expect: wrong_answer on most: and should use keys
#define WINDOW(h) ((h).window >= 0 ? (h).window + 1 : -1)
#include "attention.cuh"
