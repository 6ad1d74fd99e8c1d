// The sum of an array: loads of 16 bytes, four of them under way in each thread, and shuffles in place of shared memory.
// The last n mod 4 numbers are the first block's.

__device__ static float sum_of_warp(float mine) {
    for (int step = 16; step > 0; step /= 2) mine += __shfl_down_sync(0xffffffffu, mine, step);
    return mine;
}

__global__ void sum_of_block(const float* x, float* s, int n) {
    __shared__ float of_warp[8];
    const auto* x4 = reinterpret_cast<const float4*>(x);
    const int groups = n / 4, step = gridDim.x * blockDim.x;
    float mine = 0.0f;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 4 * groups) mine = x[4 * groups + i];
    for (; i + 3 * step < groups; i += 4 * step) {
        const float4 a = x4[i], b = x4[i + step], c = x4[i + 2 * step], d = x4[i + 3 * step];
        mine += (a.x + a.y + a.z + a.w) + (b.x + b.y + b.z + b.w) + (c.x + c.y + c.z + c.w) + (d.x + d.y + d.z + d.w);
    }
    for (; i < groups; i += step) mine += x4[i].x + x4[i].y + x4[i].z + x4[i].w;
    mine = sum_of_warp(mine);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    mine = sum_of_warp(threadIdx.x < 8 ? of_warp[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) atomicAdd(s, mine);
}

extern "C" void solve(const float* X, float* S, int n) {
    cudaMemsetAsync(S, 0, sizeof(float));
    sum_of_block<<<min(n / 4096 + 1, 2048), 256>>>(X, S, n);
}
