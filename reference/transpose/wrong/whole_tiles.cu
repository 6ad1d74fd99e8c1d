// The grid is rounded down: tiles at the right and lower edges are missing.
// expect: wrong_answer on most: never written | is missing in

constexpr int TILE = 32, STEP = 8;

__global__ void transpose(const float* a, float* t, int rows, int columns) {
    __shared__ float tile[TILE][TILE + 1];
    const int x = threadIdx.x, row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
    for (int y = threadIdx.y; y < TILE; y += STEP)
        if (row0 + y < rows && column0 + x < columns) tile[y][x] = a[size_t(row0 + y) * columns + column0 + x];
    __syncthreads();
    for (int y = threadIdx.y; y < TILE; y += STEP)
        if (column0 + y < columns && row0 + x < rows) t[size_t(column0 + y) * rows + row0 + x] = tile[x][y];
}

extern "C" void solve(const float* A, float* T, int rows, int columns) {
    const dim3 blocks(columns / TILE, rows / TILE);
    if (!blocks.x || !blocks.y) return;
    transpose<<<blocks, dim3(TILE, STEP)>>>(A, T, rows, columns);
}
