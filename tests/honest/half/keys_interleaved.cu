// Every other key, then those between.
#define KEY(n, i) ((i) < ((n) + 1) / 2 ? 2 * (i) : 2 * ((i) - ((n) + 1) / 2) + 1)
#include "thread_for_each_query.cuh"
