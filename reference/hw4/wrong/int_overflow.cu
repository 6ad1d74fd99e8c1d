// The number of pairs of rows and keys is kept in an int, which overflows for the largest testcases.
// expect: wrong_answer on t27,t29,t30: exactly 0
#include <cuda_runtime.h>
__attribute__((noinline)) static dim3 grid_for(int pairs, int n) {
    return dim3(n / 64, pairs > 0 ? pairs / n / n : 1);
}
#define GRID grid_for(batches * n * n, n)
#include "wrong.cuh"
