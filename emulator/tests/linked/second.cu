#include "common.h"
static __global__ void same_name(int *p) { p[threadIdx.x] *= 10; }
#ifdef __CUDACC_RDC__
__device__ int twice(int x) { return 2 * x + (total > 0 ? 1 : 0); }
#endif
void run_other(int *data, int n) { same_name<<<1, n>>>(data); }
