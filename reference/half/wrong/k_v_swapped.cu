// K is read where V lies, and V where K lies.
// expect: wrong_answer on most: K and V exchanged
#define SLOTS 1, 0
#include "attention.cuh"
