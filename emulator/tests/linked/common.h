#pragma once
#include <cstdio>
#ifdef __CUDACC_RDC__
extern __device__ int total;
__device__ int twice(int x);
#endif
void run_other(int *data, int n);
