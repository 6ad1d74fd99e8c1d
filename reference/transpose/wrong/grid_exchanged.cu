// The grid has its two dimensions exchanged: right for square matrices only.
// expect: wrong_answer on most: never written | is missing in

__global__ void transpose(const float* a, float* t, int rows, int columns) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns) t[size_t(column) * rows + row] = a[size_t(row) * columns + column];
}

extern "C" void solve(const float* A, float* T, int rows, int columns) {
    const dim3 blocks((rows + 15) / 16, (columns + 15) / 16);
    transpose<<<blocks, dim3(16, 16)>>>(A, T, rows, columns);
}
