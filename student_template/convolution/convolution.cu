// A filter over a picture.
//
// The grader brings the main function: it reads the input, copies it to the GPU, calls solve, and copies Y back. All pointers
// here are memory of the GPU. As it stands, nothing is written to Y, which fails every test.
//
// Theory of operation
//
//     TODO: replace these lines with yours. Which numbers does a block need, and where are they while it works?

// y[i][j] = sum of f[a][b] * x[i + a - k / 2][j + b - k / 2] over all a and b; x is 0 outside of the picture.
__global__ void filter(const float* x, const float* f, float* y, int rows, int columns, int k) {
    // TODO: your kernel.
}

extern "C" void solve(const float* X, const float* F, float* Y, int rows, int columns, int K) {
    // TODO: a grid that covers the picture.
    filter<<<dim3(1, 1), dim3(16, 16)>>>(X, F, Y, rows, columns, K);
}
