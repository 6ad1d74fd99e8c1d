// Products of a score are added as a tree.
#define DOT(a, b, d) honest::tree_dot(a, b, d)
#include "thread_for_each_query.cuh"
