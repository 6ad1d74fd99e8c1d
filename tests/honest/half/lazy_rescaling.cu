// Sums are rescaled only when the maximum has grown by 8, as in FlashAttention-4.
#define BASE_TWO
#define GROWTH 8
#include "thread_for_each_query.cuh"
