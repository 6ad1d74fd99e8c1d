// A warp for each query, its lanes share the columns.
#include "warp_for_each_query.cuh"
