// From the last key to the first.
#define KEY(n, i) ((n) - 1 - (i))
#include "thread_for_each_query.cuh"
