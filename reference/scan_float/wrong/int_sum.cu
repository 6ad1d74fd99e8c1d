// The running sum of the blocks is an int, as in a scan of integers: what is behind the point is lost.
// expect: wrong_answer on most: is missing in Y

__global__ void scan_block(const float* x, float* y, float* sums, int n) {
    __shared__ float part[256];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    part[t] = i < n ? x[i] : 0;
    __syncthreads();
    for (int step = 1; step < 256; step *= 2) {
        const float before = t >= step ? part[t - step] : 0;
        __syncthreads();
        part[t] += before;
        __syncthreads();
    }
    if (i < n) y[i] = part[t];
    if (t == 255) sums[blockIdx.x] = part[t];
}

__global__ void add_up(float* sums, int blocks) {
    int sum = 0;
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
