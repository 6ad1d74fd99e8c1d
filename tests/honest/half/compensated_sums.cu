// Kahan's sums.
#define ADD(sum, rest, x) honest::add_compensated(sum, rest, x)
#include "thread_for_each_query.cuh"
