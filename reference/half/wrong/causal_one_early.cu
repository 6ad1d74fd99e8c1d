// Query i does not see the key at which it stands.
// expect: wrong_answer on most: query i must also see key i
#define AHEAD -1
#include "attention.cuh"
