// Q is scaled, not the scores.
#define SCALED_QUERIES
#include "thread_for_each_query.cuh"
