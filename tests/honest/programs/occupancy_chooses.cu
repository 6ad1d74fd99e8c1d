// CUDA's occupancy functions choose the block; attributes of the kernel are asked for and set.
#include "honest.h"

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
    const auto kernel = shape.d == 32 ? attention<32> : attention<64>;
    int grid, block, active;
    must(cudaOccupancyMaxPotentialBlockSize(&grid, &block, kernel, 0, 512));
    must(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxL1));
    must(cudaFuncSetCacheConfig(kernel, cudaFuncCachePreferL1));
    cudaFuncAttributes facts;
    must(cudaFuncGetAttributes(&facts, kernel));
    must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&active, kernel, block, 0));
    std::printf("%d registers, blocks of %d threads, %d of them on a multiprocessor\n", facts.numRegs, block, active);
    const size_t rows = size_t(shape.batches) * shape.n, warps = block / 32;
    kernel<<<unsigned((rows + warps - 1) / warps), unsigned(warps * 32)>>>(input, output, shape.n, rows);
    must(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], result.data(), count);
}
