// Copies 512 MiB from device memory to device memory sixty times, which could be a kernel's work, and then computes.
// expect: passed; gpu; on t23; at least 28 ms
#include "hostile_attention.h"

int main(int, char** argv) {
    const size_t rows = 1 << 16, row_bytes = 8 << 10;
    char *from, *to;
    if (cudaMalloc(&from, rows * row_bytes) != cudaSuccess || cudaMalloc(&to, rows * row_bytes) != cudaSuccess) return 1;
    for (int i = 0; i < 20; ++i) {    // three spellings of the same copy
        cudaMemcpyAsync(to, from, rows * row_bytes, cudaMemcpyDeviceToDevice);
        cudaMemcpy2DAsync(from, row_bytes, to, row_bytes, row_bytes, rows, cudaMemcpyDefault);
        cudaMemcpyPeerAsync(to, 0, from, 0, rows * row_bytes);
    }
    const OnDevice data(argv[1]);
    data.compute(data.shape.batches);
    data.write(argv[2]);
    return 0;
}
