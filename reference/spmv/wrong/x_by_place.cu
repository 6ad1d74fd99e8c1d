// Entry k is multiplied by X[k], not by X at its column.
// expect: wrong_answer on most: where it does not belong

__global__ void multiply(const int* p, const int* j, const float* v, const float* x, float* y, int rows, int columns) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = p[row]; k < p[row + 1]; k++) sum += v[k] * x[k % columns];
    y[row] = sum;
}

extern "C" void solve(
    const int* P, const int* J, const float* V, const float* X, float* Y, int rows, int columns, int nonzeros) {
    multiply<<<(rows + 255) / 256, 256>>>(P, J, V, X, Y, rows, columns);
}
