// The last n mod 256 values are not counted.
// expect: wrong_answer on most: is missing in H

__global__ void count(const unsigned char* x, int* h, int n) {
    __shared__ int bins[256];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 256 * 256; i += gridDim.x * blockDim.x) atomicAdd(&bins[x[i]], 1);
    __syncthreads();
    atomicAdd(&h[threadIdx.x], bins[threadIdx.x]);
}

extern "C" void solve(const unsigned char* X, int* H, int n) {
    cudaMemsetAsync(H, 0, 256 * sizeof(int));
    count<<<min((n + 255) / 256, 1024), 256>>>(X, H, n);
}
