// Kernels have C linkage, and are launched by cudaLaunchKernel.
#include "honest.h"

extern "C" __global__ void attention32(const float* input, float* output, int n, size_t rows) {
    const size_t row = blockIdx.x * size_t(blockDim.x / 32) + threadIdx.x / 32;
    if (row < rows) attention_row<32>(input, output, n, row);
}
extern "C" __global__ void attention64(const float* input, float* output, int n, size_t rows) {
    const size_t row = blockIdx.x * size_t(blockDim.x / 32) + threadIdx.x / 32;
    if (row < rows) attention_row<64>(input, output, n, row);
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
    size_t rows = size_t(shape.batches) * shape.n;
    int n = shape.n;
    void* arguments[] = {&input, &output, &n, &rows};
    const void* const kernel = shape.d == 32 ? (const void*)attention32 : (const void*)attention64;
    must(cudaLaunchKernel(kernel, dim3(unsigned((rows + 3) / 4)), dim3(128), arguments, 0, nullptr));
    must(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], result.data(), count);
}
