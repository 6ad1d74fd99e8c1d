// The fast exponential of the special-function unit.
#define EXP(x) __expf(x)
#include "thread_for_each_query.cuh"
