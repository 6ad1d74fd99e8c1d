// A warp for each query, its lanes share the keys and merge their softmaxes.
#define LANES_SHARE_KEYS
#include "warp_for_each_query.cuh"
