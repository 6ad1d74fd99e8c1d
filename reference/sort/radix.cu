// Radix sort, four bits a pass, the lowest first; every pass keeps the order of equal digits.
//
// A pass has three kernels. `count` counts the digits of each tile of 2048 numbers. `scan` turns the counts, digit by digit and
// tile by tile, into the places where a tile's numbers with a digit begin. `scatter` moves them: a warp takes 32 numbers
// at a time, finds which of its lanes have the same digit by four ballots, and so the number's place among them. The warps
// of a tile have counted before, so that each knows where it begins.

constexpr int BITS = 4, DIGITS = 1 << BITS, WARPS = 8, EACH = 8, TILE = WARPS * 32 * EACH;

// Negative numbers come first: with the sign turned around, the order is that of unsigned numbers.
__device__ static unsigned digit_of(int value, int shift) { return (unsigned(value) ^ 0x80000000u) >> shift & (DIGITS - 1); }

// The lanes of the warp, among those in `active`, that have this digit.
__device__ static unsigned same(unsigned digit, unsigned active) {
    unsigned lanes = active;
    for (int bit = 0; bit < BITS; bit++) {
        const unsigned set = __ballot_sync(0xffffffffu, digit >> bit & 1);
        lanes &= digit >> bit & 1 ? set : ~set;
    }
    return lanes;
}

__global__ void count(const int* x, int* counts, int n, int tiles, int shift) {
    __shared__ int bins[DIGITS];
    if (threadIdx.x < DIGITS) bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * TILE + threadIdx.x; i < min(n, (int(blockIdx.x) + 1) * TILE); i += blockDim.x)
        atomicAdd(&bins[digit_of(x[i], shift)], 1);
    __syncthreads();
    if (threadIdx.x < DIGITS) counts[threadIdx.x * tiles + blockIdx.x] = bins[threadIdx.x];
}

// Exclusive prefix sums in one block of 1024 threads: each has a part of its own.
__global__ void scan(int* counts, int size) {
    __shared__ int sums[1024];
    const int t = threadIdx.x, each = (size + 1023) / 1024, first = min(t * each, size), end = min(first + each, size);
    int sum = 0;
    for (int i = first; i < end; i++) sum += counts[i];
    sums[t] = sum;
    __syncthreads();
    for (int step = 1; step < 1024; step *= 2) {
        const int before = t >= step ? sums[t - step] : 0;
        __syncthreads();
        sums[t] += before;
        __syncthreads();
    }
    int before = sums[t] - sum;
    for (int i = first; i < end; i++) {
        const int own = counts[i];
        counts[i] = before;
        before += own;
    }
}

__global__ void scatter(const int* x, int* y, const int* places, int n, int tiles, int shift) {
    __shared__ int next[WARPS][DIGITS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first = blockIdx.x * TILE + warp * 32 * EACH;
    if (lane < DIGITS) next[warp][lane] = 0;
    __syncwarp();
    int value[EACH], rank[EACH];
    for (int e = 0; e < EACH; e++) {
        const int i = first + 32 * e + lane;
        const bool there = i < n;
        value[e] = there ? x[i] : 0;
        const unsigned active = __ballot_sync(0xffffffffu, there), digit = digit_of(value[e], shift);
        const unsigned lanes = same(digit, active);
        const int before = next[warp][digit];
        rank[e] = before + __popc(lanes & ((1u << lane) - 1));
        __syncwarp();
        if (there && lane == __ffs(lanes) - 1) next[warp][digit] = before + __popc(lanes);
        __syncwarp();
    }
    __syncthreads();
    if (threadIdx.x < DIGITS) {  // from counts of each warp to the place where it begins
        int place = places[threadIdx.x * tiles + blockIdx.x];
        for (int w = 0; w < WARPS; w++) {
            const int own = next[w][threadIdx.x];
            next[w][threadIdx.x] = place;
            place += own;
        }
    }
    __syncthreads();
    for (int e = 0; e < EACH; e++)
        if (first + 32 * e + lane < n) y[next[warp][digit_of(value[e], shift)] + rank[e]] = value[e];
}

extern "C" void solve(const int* X, int* Y, int n) {
    const int tiles = (n + TILE - 1) / TILE;
    int *counts, *other;
    cudaMalloc(&counts, size_t(tiles) * DIGITS * sizeof(int));
    cudaMalloc(&other, size_t(n) * sizeof(int));
    const int* from = X;
    for (int shift = 0; shift < 32; shift += BITS) {
        int* const to = shift / BITS % 2 ? Y : other;
        count<<<tiles, 256>>>(from, counts, n, tiles, shift);
        scan<<<1, 1024>>>(counts, tiles * DIGITS);
        scatter<<<tiles, 32 * WARPS>>>(from, to, counts, n, tiles, shift);
        from = to;
    }
    cudaFree(counts);
    cudaFree(other);
}
