// The heads of a group overwrite dK and dV.
// expect: wrong_answer on most: is summed without
#define FIRST_HEAD(first, group) ((first) + (group) - 1)
#include "gradient.cuh"
