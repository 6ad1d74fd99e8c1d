// The last 32 keys are ignored.
#define KEYS(n) ((n) - 32)
#include "attention.cuh"
