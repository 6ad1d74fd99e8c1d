// Every hundredth key is skipped.
// expect: wrong_answer on all: every 100th key
#define USED(key) ((key) % 100 != 99)
#include "wrong.cuh"
