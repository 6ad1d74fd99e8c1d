// The last run of comparisons is missing: two sorted halves are never merged.
// expect: wrong_answer on most: belongs in Y

#include <climits>

__global__ void fill(const int* x, int* a, int n, int size) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) a[i] = i < n ? x[i] : INT_MAX;
}

__global__ void compare(int* a, int size, int run, int apart) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, partner = i ^ apart;
    if (i >= size || partner < i) return;
    const int low = a[i], high = a[partner];
    const bool up = (i & run) == 0;
    if ((low > high) == up) a[i] = high, a[partner] = low;
}

extern "C" void solve(const int* X, int* Y, int n) {
    int size = 1;
    while (size < n) size *= 2;
    const int blocks = (size + 255) / 256;
    int* a;
    cudaMalloc(&a, size * sizeof(int));
    fill<<<blocks, 256>>>(X, a, n, size);
    for (int run = 2; run < size; run *= 2)
        for (int apart = run / 2; apart > 0; apart /= 2) compare<<<blocks, 256>>>(a, size, run, apart);
    cudaMemcpy(Y, a, n * sizeof(int), cudaMemcpyDeviceToDevice);
    cudaFree(a);
}
