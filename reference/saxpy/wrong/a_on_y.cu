// a multiplies Y in place of X.
// expect: wrong_answer on most: exchanged: the input has

__global__ void saxpy(const float* x, const float* y, float* z, int n, float a) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = x[i] + a * y[i];
}

extern "C" void solve(const float* X, const float* Y, float* Z, int n, float a) {
    saxpy<<<(n + 255) / 256, 256>>>(X, Y, Z, n, a);
}
