// Everything in float64.
#define NUMBER double
#include "thread_for_each_query.cuh"
