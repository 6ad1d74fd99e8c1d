// 2^x by a polynomial.
#define BASE_TWO
#define EXP(x) honest::polynomial_exp2(x)
#include "thread_for_each_query.cuh"
