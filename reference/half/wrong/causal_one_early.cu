// Query i does not see the key at which it stands.
// expect: wrong_answer on most: no cause is named
#define AHEAD -1
#include "attention.cuh"
