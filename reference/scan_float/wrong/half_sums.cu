// The sums of a block are kept in half precision.
// expect: wrong_answer on most: all else in X 0

#include <cuda_fp16.h>

__global__ void scan_block(const float* x, float* y, float* sums, int n) {
    __shared__ __half part[256];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    part[t] = __half(i < n ? x[i] : 0.0f);
    __syncthreads();
    for (int step = 1; step < 256; step *= 2) {
        const float before = t >= step ? float(part[t - step]) : 0.0f;
        __syncthreads();
        part[t] = __half(float(part[t]) + before);
        __syncthreads();
    }
    if (i < n) y[i] = part[t];
    if (t == 255) sums[blockIdx.x] = part[t];
}

__global__ void add_up(float* sums, int blocks) {
    float sum = 0;
    for (int b = 0; b < blocks; b++) {
        const float own = sums[b];
        sums[b] = sum;
        sum += own;
    }
}

__global__ void add_to_block(float* y, const float* sums, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] += sums[blockIdx.x];
}

extern "C" void solve(const float* X, float* Y, int n) {
    const int blocks = (n + 255) / 256;
    float* sums;
    cudaMalloc(&sums, blocks * sizeof(float));
    scan_block<<<blocks, 256>>>(X, Y, sums, n);
    add_up<<<1, 1>>>(sums, blocks);
    add_to_block<<<blocks, 256>>>(Y, sums, n);
    cudaFree(sums);
}
