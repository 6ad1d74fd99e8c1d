// Only the tile itself is loaded: its halo in shared memory is never set.

constexpr int TILE = 16, MOST = 15;

__global__ void filter(const float* x, const float* f, float* y, int rows, int columns, int k) {
    __shared__ float tile[TILE + MOST - 1][TILE + MOST - 1];
    const int half = k / 2, row0 = blockIdx.y * TILE - half, column0 = blockIdx.x * TILE - half;
    for (int a = threadIdx.y; a < TILE; a += TILE)
        for (int b = threadIdx.x; b < TILE; b += TILE) {
            const int row = row0 + a, column = column0 + b;
            const bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
            tile[a][b] = inside ? x[row * columns + column] : 0.0f;
        }
    __syncthreads();
    const int j = blockIdx.x * TILE + threadIdx.x, i = blockIdx.y * TILE + threadIdx.y;
    if (i >= rows || j >= columns) return;
    float sum = 0.0f;
    for (int a = 0; a < k; a++)
        for (int b = 0; b < k; b++) sum += f[a * k + b] * tile[threadIdx.y + a][threadIdx.x + b];
    y[i * columns + j] = sum;
}

extern "C" void solve(const float* X, const float* F, float* Y, int rows, int columns, int K) {
    filter<<<dim3((columns + TILE - 1) / TILE, (rows + TILE - 1) / TILE), dim3(TILE, TILE)>>>(X, F, Y, rows, columns, K);
}
