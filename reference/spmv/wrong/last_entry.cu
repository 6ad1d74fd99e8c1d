// The last entry of each row is left out.
// expect: wrong_answer on most: is missing in Y

__global__ void multiply(const int* p, const int* j, const float* v, const float* x, float* y, int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = p[row]; k < p[row + 1] - 1; k++) sum += v[k] * x[j[k]];
    y[row] = sum;
}

extern "C" void solve(
    const int* P, const int* J, const float* V, const float* X, float* Y, int rows, int columns, int nonzeros) {
    multiply<<<(rows + 255) / 256, 256>>>(P, J, V, X, Y, rows);
}
