// Scores times log2(e), and powers of two.
#define BASE_TWO
#include "thread_for_each_query.cuh"
