// Tiles of 16 queries and 64 keys in shared memory.
#define ROWS 16
#define KEYS 64
#include "tiles.cuh"
