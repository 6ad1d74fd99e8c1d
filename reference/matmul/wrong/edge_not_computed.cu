// Too few blocks: the edges of C beyond the last whole tile are never written.
// expect: wrong_answer on most: never written
#define BLOCKS(size) ((size) / kTile > 0 ? (size) / kTile : 1)
#include "product.cuh"
