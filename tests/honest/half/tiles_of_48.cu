// Keys join the softmax 48 at a time.
#define TILE 48
#include "thread_for_each_query.cuh"
