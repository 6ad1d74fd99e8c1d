// Memory comes from the stream-ordered allocator; nothing is freed.
#include "honest.h"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::FILE* const file = std::fopen(argv[1], "rb");
    const Shape shape = read_shape(file);
    [[maybe_unused]] const size_t count = shape.count(), batch = size_t(shape.n) * shape.d;
    std::vector<float> values(3 * count), result(count);
    read_values(file, values.data(), 3 * count);
    cudaStream_t stream;
    must(cudaStreamCreate(&stream));
    float *input, *output;
    must(cudaMallocAsync(&input, 3 * count * 4, stream));
    must(cudaMallocAsync(&output, count * 4, stream));
    must(cudaMemcpyAsync(input, values.data(), 3 * count * 4, cudaMemcpyHostToDevice, stream));
    launch(input, output, shape.batches, shape.n, shape.d, stream);
    must(cudaMemcpyAsync(result.data(), output, count * 4, cudaMemcpyDeviceToHost, stream));
    must(cudaStreamSynchronize(stream));
    write_values(argv[2], result.data(), count);
}
