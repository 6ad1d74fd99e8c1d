// The maximum of a row first, then its exponentials.
#define MAXIMUM_FIRST
#include "thread_for_each_query.cuh"
