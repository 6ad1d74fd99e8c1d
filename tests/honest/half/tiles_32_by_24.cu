// Tiles of 32 queries and 24 keys, which is no power of two.
#define ROWS 32
#define KEYS 24
#include "tiles.cuh"
