// The tile of K is read with rows and columns exchanged.
// expect: wrong_answer on all: K is read with rows and columns exchanged | indices do not belong together
// tiles only
#define K_AT(key, x) ((x) * kTile + (key))
#include "wrong.cuh"
