// One program of two files. With -rdc=true the device code of one calls the other's; both files have a kernel of the
// same name, as static functions may.
#include "common.h"
static __global__ void same_name(int *p) { p[threadIdx.x] += 1; }
#ifdef __CUDACC_RDC__
__device__ int total = 5;
__global__ void across(int *p) {
    p[threadIdx.x] = twice(p[threadIdx.x]);
    atomicAdd(&total, 1);
}
#endif
int main() {
    int *p, host[32], seen = 0;
    cudaMallocManaged(&p, 32 * sizeof(int));
    for (int i = 0; i < 32; i++) p[i] = i;
    same_name<<<1, 32>>>(p);
    run_other(p, 32);
#ifdef __CUDACC_RDC__
    across<<<1, 32>>>(p);
    cudaMemcpyFromSymbol(&seen, total, sizeof seen);
#endif
    cudaDeviceSynchronize();
    cudaMemcpy(host, p, sizeof host, cudaMemcpyDefault);
    printf("%d %d %d\n", host[0], host[31], seen);
    return 0;
}
