// A sparse matrix times a vector.
//
// The grader brings the main function: it reads the input, copies it to the GPU, calls solve, and copies Y back. All pointers
// here are memory of the GPU. As it stands, nothing is written to Y, which fails every test.
//
// Theory of operation
//
//     TODO: replace these lines with yours. How many entries does a thread have if rows are of very different lengths?

// y[i] = sum of v[k] * x[j[k]] for k from p[i] to p[i + 1] - 1.
__global__ void multiply(const int* p, const int* j, const float* v, const float* x, float* y, int rows) {
    // TODO: your kernel. Begin with a thread for each row.
}

extern "C" void solve(
    const int* P, const int* J, const float* V, const float* X, float* Y, int rows, int columns, int nonzeros) {
    // TODO: blocks and threads that fit your kernel.
    multiply<<<1, 256>>>(P, J, V, X, Y, rows);
}
