// The sum is set to 0 for every tile.
// expect: wrong_answer on most: each tile starts the sum again
#define AT_TILE sum = 0.0f;
#include "product.cuh"
