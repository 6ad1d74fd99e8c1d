// The last float is not written.
#define BEFORE_WRITE --count
#include "attention.cuh"
