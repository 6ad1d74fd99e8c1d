// The last n mod 256 numbers are left out.
// expect: wrong_answer on most: is missing in S

__global__ void sum_of_block(const float* x, float* s, int n) {
    __shared__ float part[256];
    float mine = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 256 * 256; i += gridDim.x * blockDim.x) mine += x[i];
    part[threadIdx.x] = mine;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) atomicAdd(s, part[0]);
}

extern "C" void solve(const float* X, float* S, int n) {
    cudaMemsetAsync(S, 0, sizeof(float));
    sum_of_block<<<min((n + 255) / 256, 512), 256>>>(X, S, n);
}
