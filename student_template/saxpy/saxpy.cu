// First day: Z = a X + Y, a number for each thread.
//
// The grader brings the main function: it reads the numbers, copies them to the GPU, calls solve, and copies Z back. All
// pointers here are memory of the GPU. The kernel and its launch are yours: look for TODO. As it stands, nothing is written
// to Z, which fails every test.

// z[i] = a * x[i] + y[i] for all i from 0 to n - 1.
__global__ void saxpy(const float* x, const float* y, float* z, int n, float a) {
    // TODO: which i is this thread's? (blockIdx.x, blockDim.x, threadIdx.x.) What if it is n or more?
}

extern "C" void solve(const float* X, const float* Y, float* Z, int n, float a) {
    // TODO: how many blocks of 256 threads does it take for n numbers?
    saxpy<<<1, 256>>>(X, Y, Z, n, a);
}
