// A cooperative grid: all blocks scale the queries, wait for one another, and then compute.
#include "honest.h"
#include <cooperative_groups.h>

template <int D>
__global__ void whole(float* input, float* output, int n, int batches) {
    const size_t rows = size_t(batches) * n, threads = size_t(gridDim.x) * blockDim.x, own = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    for (size_t i = own; i < rows * D; i += threads) input[i / (size_t(n) * D) * 3 * n * D + i % (size_t(n) * D)] *= 2.0f;
    cooperative_groups::this_grid().sync();
    for (size_t i = own; i < rows * D; i += threads) input[i / (size_t(n) * D) * 3 * n * D + i % (size_t(n) * D)] *= 0.5f;
    cooperative_groups::this_grid().sync();
    for (size_t row = own / 32; row < rows; row += threads / 32) attention_row<D>(input, output, n, row);
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
    const auto kernel = shape.d == 32 ? whole<32> : whole<64>;
    int device, processors, blocks;
    must(cudaGetDevice(&device));
    must(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 128, 0));
    int n = shape.n, batches = shape.batches;
    void* arguments[] = {&input, &output, &n, &batches};
    must(cudaLaunchCooperativeKernel((const void*)kernel, dim3(processors * blocks), dim3(128), arguments, 0, 0));
    must(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], result.data(), count);
}
