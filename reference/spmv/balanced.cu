// A sparse matrix times a vector, the same number of entries for each warp, whatever the rows. A warp goes through 1024
// entries, 32 at a time; a lane that ends a row has the row's sum after a segmented sum over the warp. Rows that go on
// beyond a warp's entries are added atomically, and so Y begins at 0.

constexpr int ENTRIES = 1024;

__device__ static int row_of(const int* p, int rows, int k) {
    int low = 0, high = rows;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (p[middle] <= k)
            low = middle;
        else
            high = middle;
    }
    return low;
}

__global__ void multiply(const int* p, const int* j, const float* v, const float* x, float* y, int rows, int nonzeros) {
    const int lane = threadIdx.x % 32;
    const long long first = (blockIdx.x * (blockDim.x / 32LL) + threadIdx.x / 32) * ENTRIES;
    if (first >= nonzeros) return;
    const int end = min(first + ENTRIES, (long long)nonzeros);
    int row = row_of(p, rows, min(int(first) + lane, nonzeros - 1));
    for (int k0 = int(first); k0 < end; k0 += 32) {
        const int k = k0 + lane;
        float sum = k < end ? v[k] * x[j[k]] : 0.0f;
        if (k < end)
            while (p[row + 1] <= k) row++;
        const int own = k < end ? row : -1;
        for (int step = 1; step < 32; step *= 2) {
            const float other = __shfl_up_sync(0xffffffffu, sum, step);
            const int other_row = __shfl_up_sync(0xffffffffu, own, step);
            if (lane >= step && other_row == own) sum += other;
        }
        const int next = __shfl_down_sync(0xffffffffu, own, 1);
        if (own >= 0 && (lane == 31 || next != own)) atomicAdd(&y[own], sum);
    }
}

extern "C" void solve(
    const int* P, const int* J, const float* V, const float* X, float* Y, int rows, int columns, int nonzeros) {
    const int warps = (nonzeros + ENTRIES - 1) / ENTRIES;
    cudaMemsetAsync(Y, 0, rows * sizeof(float));
    multiply<<<(warps + 7) / 8, 256>>>(P, J, V, X, Y, rows, nonzeros);
}
