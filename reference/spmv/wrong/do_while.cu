// The loop over the entries looks at its end only afterwards: an empty row gets the next row's first entry.
// expect: wrong_answer on most: where it does not belong

__global__ void multiply(const int* p, const int* j, const float* v, const float* x, float* y, int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    int k = p[row];
    do sum += v[k] * x[j[k]];
    while (++k < p[row + 1]);
    y[row] = sum;
}

extern "C" void solve(
    const int* P, const int* J, const float* V, const float* X, float* Y, int rows, int columns, int nonzeros) {
    multiply<<<(rows + 255) / 256, 256>>>(P, J, V, X, Y, rows);
}
