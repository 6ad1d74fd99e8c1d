// Weights are rounded to the type before they meet V, as tensor cores take them; their sum is not.
#define WEIGHT(p, w) rounded(p, w)
#include "thread_for_each_query.cuh"
