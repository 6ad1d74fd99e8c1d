// A filter over a picture: the filter in constant memory, which a warp reads as one number; the picture in tiles of shared
// memory with their halo of K / 2 on each side. A block of 32 x 8 threads makes 32 x 32 results, four rows a thread. K is
// known to the compiler, so that the loops over the filter are unrolled.

constexpr int MOST = 15, WIDTH = 32, HEIGHT = 32, STEP = 8;
__constant__ float weights[MOST * MOST];

template <int K> __global__ void filter(const float* x, float* y, int rows, int columns) {
    constexpr int HALF = K / 2, W = WIDTH + K - 1, H = HEIGHT + K - 1;
    __shared__ float tile[H][W];
    const int row0 = blockIdx.y * HEIGHT - HALF, column0 = blockIdx.x * WIDTH - HALF;
    for (int i = threadIdx.y; i < H; i += STEP)
        for (int j = threadIdx.x; j < W; j += WIDTH) {
            const int row = row0 + i, column = column0 + j;
            const bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
            tile[i][j] = inside ? x[size_t(row) * columns + column] : 0.0f;
        }
    __syncthreads();
    float sum[HEIGHT / STEP] = {};
    for (int a = 0; a < K; a++)
#pragma unroll
        for (int b = 0; b < K; b++)
#pragma unroll
            for (int r = 0; r < HEIGHT / STEP; r++)
                sum[r] += weights[a * K + b] * tile[threadIdx.y + r * STEP + a][threadIdx.x + b];
    const int column = blockIdx.x * WIDTH + threadIdx.x;
    for (int r = 0; r < HEIGHT / STEP; r++) {
        const int row = blockIdx.y * HEIGHT + threadIdx.y + r * STEP;
        if (row < rows && column < columns) y[size_t(row) * columns + column] = sum[r];
    }
}

template <int K> static void launch(const float* X, float* Y, int rows, int columns, int k) {
    if constexpr (K <= MOST) {
        const dim3 blocks((columns + WIDTH - 1) / WIDTH, (rows + HEIGHT - 1) / HEIGHT);
        if (k == K)
            filter<K><<<blocks, dim3(WIDTH, STEP)>>>(X, Y, rows, columns);
        else
            launch<K + 2>(X, Y, rows, columns, k);
    }
}

extern "C" void solve(const float* X, const float* F, float* Y, int rows, int columns, int K) {
    cudaMemcpyToSymbolAsync(weights, F, K * K * sizeof(float), 0, cudaMemcpyDeviceToDevice);
    launch<1>(X, Y, rows, columns, K);
}
