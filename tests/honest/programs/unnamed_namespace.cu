// The kernel lies in an unnamed namespace, inside a class template's namespace.
#include "honest.h"

namespace homework { namespace {
template <int D, typename... Unused>
__global__ void hidden(const float* input, float* output, int n, size_t rows, Unused...) {
    const size_t row = blockIdx.x * size_t(blockDim.x / 32) + threadIdx.x / 32;
    if (row < rows) attention_row<D>(input, output, n, row);
}
} }

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
    const unsigned blocks = unsigned((rows + 3) / 4);
    if (shape.d == 32)
        homework::hidden<32><<<blocks, 128>>>(input, output, shape.n, rows, 1, 2.0);
    else
        homework::hidden<64><<<blocks, 128>>>(input, output, shape.n, rows, 1, 2.0);
    must(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], result.data(), count);
}
