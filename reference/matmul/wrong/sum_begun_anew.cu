// The sum is set to 0 for every tile.
// expect: wrong_answer on most: is summed without
#define AT_TILE sum = 0.0f;
#include "product.cuh"
