// The loop over tiles of keys runs once.
// expect: wrong_answer on all: Keys 32–127 ( | Keys 1–127 ( | O is summed without
#define TILES 1
#include "wrong.cuh"
