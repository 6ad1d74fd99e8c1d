// A warp for each row adds up its lanes with steps from 8 on: only half of them are in the sum.
// expect: wrong_answer on most: is missing in Y

__global__ void multiply(const int* p, const int* j, const float* v, const float* x, float* y, int rows) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = p[row] + lane; k < p[row + 1]; k += 32) sum += v[k] * x[j[k]];
    for (int step = 8; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0) y[row] = sum;
}

extern "C" void solve(
    const int* P, const int* J, const float* V, const float* X, float* Y, int rows, int columns, int nonzeros) {
    multiply<<<(rows + 7) / 8, 256>>>(P, J, V, X, Y, rows);
}
