// Row i sees key i + 1 as well.
// expect: wrong_answer on most: that the mask hides
#define HIDDEN(key, row) ((key) > (row) + 1)
#include "attention.cuh"
