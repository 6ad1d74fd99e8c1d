// dK and dV are those of the first head of a group.
// expect: wrong_answer on most: the first query head of each group alone
#define END_HEAD(first, group) ((first) + 1)
#include "gradient.cuh"
