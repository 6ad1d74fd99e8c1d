// dV is begun anew every 32 rows: each tile overwrites the ones before.
// expect: wrong_answer on most: is summed without
#define DV_BEFORE(dv, i) ((i) % 32 == 0 ? 0.0f : (dv))
#include "gradient.cuh"
