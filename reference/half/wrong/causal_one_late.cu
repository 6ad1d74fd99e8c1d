// Query i sees one key too many.
// expect: wrong_answer on most: and should use keys
#define AHEAD 1
#include "attention.cuh"
