// Row and column begins with the input's own values: the output is a copy.
// expect: wrong_answer on most: belongs in T | read with rows and columns exchanged

__global__ void transpose(const float* a, float* t, int rows, int columns) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns) t[size_t(row) * columns + column] = a[size_t(row) * columns + column];
}

extern "C" void solve(const float* A, float* T, int rows, int columns) {
    const dim3 blocks((columns + 15) / 16, (rows + 15) / 16);
    transpose<<<blocks, dim3(16, 16)>>>(A, T, rows, columns);
}
