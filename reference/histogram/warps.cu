// A histogram: counts of each warp in shared memory, and 16 values with each load. Equal neighbours are counted together
// before they are added, because frequent values are what makes threads wait for each other. The last n mod 16 values are
// the first block's.

constexpr int BINS = 256, WARPS = 8;

__global__ void count(const unsigned char* x, int* h, int n) {
    __shared__ int bins[WARPS][BINS];
    int* const own = bins[threadIdx.x / 32];
    for (int bin = threadIdx.x % 32; bin < BINS; bin += 32) own[bin] = 0;
    __syncwarp();
    const int groups = n / 16, i0 = blockIdx.x * blockDim.x + threadIdx.x;
    if (i0 < n - 16 * groups) atomicAdd(&own[x[16 * groups + i0]], 1);
    const auto* x16 = reinterpret_cast<const uint4*>(x);
    unsigned last = BINS;  // the value that `many` in a row have
    int many = 0;
    for (int i = i0; i < groups; i += gridDim.x * blockDim.x) {
        const uint4 four = x16[i];
        for (unsigned word : {four.x, four.y, four.z, four.w})
            for (int byte = 0; byte < 4; byte++) {
                const unsigned value = word >> 8 * byte & 255;
                if (value != last) {
                    if (many) atomicAdd(&own[last], many);
                    last = value, many = 0;
                }
                many++;
            }
    }
    if (many) atomicAdd(&own[last], many);
    __syncthreads();
    int sum = 0;
    for (int warp = 0; warp < WARPS; warp++) sum += bins[warp][threadIdx.x];
    if (sum) atomicAdd(&h[threadIdx.x], sum);
}

extern "C" void solve(const unsigned char* X, int* H, int n) {
    cudaMemsetAsync(H, 0, BINS * sizeof(int));
    count<<<min(n / 4096 + 1, 1056), 32 * WARPS>>>(X, H, n);
}
