// One block only: numbers from 256 on are never written.
// expect: wrong_answer on most: never written | is missing in

__global__ void saxpy(const float* x, const float* y, float* z, int n, float a) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = a * x[i] + y[i];
}

extern "C" void solve(const float* X, const float* Y, float* Z, int n, float a) {
    saxpy<<<1, 256>>>(X, Y, Z, n, a);
}
