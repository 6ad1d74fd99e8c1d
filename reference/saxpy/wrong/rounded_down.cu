// The number of blocks is rounded down: the last n mod 256 numbers are never written.
// expect: wrong_answer on most: never written | is missing in | No kernel ran

__global__ void saxpy(const float* x, const float* y, float* z, int n, float a) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = a * x[i] + y[i];
}

extern "C" void solve(const float* X, const float* Y, float* Z, int n, float a) {
    if (n >= 256) saxpy<<<n / 256, 256>>>(X, Y, Z, n, a);
}
