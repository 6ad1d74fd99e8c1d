// Four threads share the keys of a query; a second kernel combines what they found.
#define SPLITS 4
#include "thread_for_each_query.cuh"
