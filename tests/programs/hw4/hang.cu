// The host program never ends.
#define BEFORE_WRITE for (volatile int forever = 1; forever;) continue
#include "attention.cuh"
