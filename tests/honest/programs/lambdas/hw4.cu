// Kernels are templates over lambdas that the host makes.
#include "honest.h"

template <typename Work>
__global__ void for_each_row(size_t rows, Work work) {
    const size_t row = blockIdx.x * size_t(blockDim.x / 32) + threadIdx.x / 32;
    if (row < rows) work(row);
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
    const int n = shape.n, d = shape.d;
    for_each_row<<<unsigned((rows + 3) / 4), 128>>>(rows, [=] __device__(size_t row) {
        if (d == 32)
            attention_row<32>(input, output, n, row);
        else
            attention_row<64>(input, output, n, row);
    });
    must(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], result.data(), count);
}
