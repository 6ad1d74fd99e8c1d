// Row i sees key i + 1 as well.
// expect: wrong_answer on most: row i sees keys 0 to i + 1
#define HIDDEN(key, row) ((key) > (row) + 1)
#include "attention.cuh"
