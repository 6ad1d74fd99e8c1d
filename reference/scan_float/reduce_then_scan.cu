// Prefix sums: the sums of tiles of 8192 numbers first, then their prefix sums in one block, then each tile's own. X is read
// twice and Y written once.
//
// A block of 256 threads takes a tile in 8 parts of 1024 numbers. Within a part, a thread adds four adjacent numbers (one
// load of 16 bytes), a warp scans with shuffles, and the sums of the eight warps meet in shared memory.

constexpr int THREADS = 256, PART = 4 * THREADS, PARTS = 8, TILE = PARTS * PART;

__device__ static float4 load4(const float* x, int i, int n) {
    if (i + 3 < n) return *reinterpret_cast<const float4*>(x + i);
    return make_float4(i < n ? x[i] : 0, i + 1 < n ? x[i + 1] : 0, i + 2 < n ? x[i + 2] : 0, 0);
}

// The sum of `mine` over all threads before this one and itself; `total` over all threads of the block.
__device__ static float scan_block(float mine, float* total) {
    __shared__ float of_warp[THREADS / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int step = 1; step < 32; step *= 2) {
        const float before = __shfl_up_sync(0xffffffffu, mine, step);
        if (lane >= step) mine += before;
    }
    if (lane == 31) of_warp[warp] = mine;
    __syncthreads();
    float all = 0;
    for (int w = 0; w < THREADS / 32; w++) {
        if (w == warp) mine += all;
        all += of_warp[w];
    }
    __syncthreads();
    *total = all;
    return mine;
}

__global__ void sum_tiles(const float* x, float* sums, int n) {
    float mine = 0, total;
    for (int part = 0; part < PARTS; part++) {
        const float4 four = load4(x, blockIdx.x * TILE + part * PART + 4 * threadIdx.x, n);
        mine += four.x + four.y + four.z + four.w;
    }
    scan_block(mine, &total);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

// Each sum becomes that of all tiles before.
__global__ void scan_sums(float* sums, int tiles) {
    float before = 0, total;
    for (int first = 0; first < tiles; first += THREADS) {
        const int i = first + threadIdx.x;
        const float own = i < tiles ? sums[i] : 0;
        const float with_own = scan_block(own, &total);
        if (i < tiles) sums[i] = before + with_own - own;
        before += total;
    }
}

__global__ void scan_tiles(const float* x, float* y, const float* sums, int n) {
    float before = sums[blockIdx.x], total;
    for (int part = 0; part < PARTS; part++) {
        const int i = blockIdx.x * TILE + part * PART + 4 * threadIdx.x;
        float4 four = load4(x, i, n);
        four.y += four.x, four.z += four.y, four.w += four.z;
        const float others = before + scan_block(four.w, &total) - four.w;
        four.x += others, four.y += others, four.z += others, four.w += others;
        if (i + 3 < n)
            *reinterpret_cast<float4*>(y + i) = four;
        else {
            if (i < n) y[i] = four.x;
            if (i + 1 < n) y[i + 1] = four.y;
            if (i + 2 < n) y[i + 2] = four.z;
        }
        before += total;
    }
}

extern "C" void solve(const float* X, float* Y, int n) {
    const int tiles = (n + TILE - 1) / TILE;
    float* sums;
    cudaMalloc(&sums, tiles * sizeof(float));
    sum_tiles<<<tiles, THREADS>>>(X, sums, n);
    scan_sums<<<1, THREADS>>>(sums, tiles);
    scan_tiles<<<tiles, THREADS>>>(X, Y, sums, n);
    cudaFree(sums);
}
