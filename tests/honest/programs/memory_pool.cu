// Memory comes from a pool of its own, in the order of a stream, and goes back there.
#include "honest.h"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::FILE* const file = std::fopen(argv[1], "rb");
    const Shape shape = read_shape(file);
    const size_t count = shape.count();
    std::vector<float> values(3 * count), result(count);
    read_values(file, values.data(), 3 * count);
    cudaMemPoolProps wanted = {};
    wanted.allocType = cudaMemAllocationTypePinned;
    wanted.location = {cudaMemLocationTypeDevice, 0};
    cudaMemPool_t pool;
    must(cudaMemPoolCreate(&pool, &wanted));
    cudaStream_t stream;
    must(cudaStreamCreate(&stream));
    float *input, *output;
    must(cudaMallocFromPoolAsync(&input, 3 * count * 4, pool, stream));
    must(cudaMallocFromPoolAsync(&output, count * 4, pool, stream));
    must(cudaMemcpyAsync(input, values.data(), 3 * count * 4, cudaMemcpyHostToDevice, stream));
    launch(input, output, shape.batches, shape.n, shape.d, stream);
    must(cudaMemcpyAsync(result.data(), output, count * 4, cudaMemcpyDeviceToHost, stream));
    must(cudaFreeAsync(input, stream));
    must(cudaFreeAsync(output, stream));
    must(cudaStreamSynchronize(stream));
    must(cudaMemPoolDestroy(pool));
    write_values(argv[2], result.data(), count);
}
