// Device code of several files is linked (-rdc=true): a function and a constant lie in another file than the kernel.
#include "honest.h"
#include "row.cuh"

__global__ void across_files(const float* input, float* output, int d, size_t rows) {
    const size_t row = blockIdx.x * size_t(blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    if (d == 32)
        row_of_32(input, output, row);
    else
        row_of_64(input, output, row);
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
    must(cudaMemcpyToSymbol(kept_n, &shape.n, sizeof shape.n));
    const size_t rows = size_t(shape.batches) * shape.n;
    across_files<<<unsigned((rows + 3) / 4), 128>>>(input, output, shape.d, rows);
    must(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], result.data(), count);
}
