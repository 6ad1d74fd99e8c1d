// The kernel prints a line for each batch, and asserts.
#include "honest.h"
#include <cassert>

template <int D>
__global__ void talking(const float* input, float* output, int n, size_t rows) {
    const size_t row = blockIdx.x * size_t(blockDim.x / 32) + threadIdx.x / 32;
    assert(row < rows);
    if (row % n == 0 && threadIdx.x % 32 == 0) printf("batch %d begins: %s\n", int(row / n), "q, k, v");
    attention_row<D>(input, output, n, row);
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::FILE* const file = std::fopen(argv[1], "rb");
    const Shape shape = read_shape(file);
    const size_t count = shape.count();
    std::vector<float> values(3 * count), result(count);
    read_values(file, values.data(), 3 * count);
    float *input, *output;
    must(cudaMalloc(&input, 3 * count * 4));
    must(cudaMalloc(&output, count * 4));
    must(cudaMemcpy(input, values.data(), 3 * count * 4, cudaMemcpyHostToDevice));
    const size_t rows = size_t(shape.batches) * shape.n;
    (shape.d == 32 ? talking<32> : talking<64>)<<<unsigned(rows / 4), 128>>>(input, output, shape.n, rows);
    must(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], result.data(), count);
}
