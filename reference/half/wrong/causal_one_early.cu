// Query i does not see the key at which it stands.
// expect: wrong_answer on most: itself is seen by query i
#define AHEAD -1
#include "attention.cuh"
