// The plain implementation of the handout: every step is rounded to the type.
#define MAXIMUM_FIRST
#define NORMALISED
#define SCORE(p, s) rounded(p, s)
#define WEIGHT(p, w) rounded(p, w)
#include "thread_for_each_query.cuh"
