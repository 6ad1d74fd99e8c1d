// dV is summed up in half precision.
// expect: wrong_answer on most: lost precision
#define DV_SUM(x) in_half(x, h.type)
#include "gradient.cuh"
