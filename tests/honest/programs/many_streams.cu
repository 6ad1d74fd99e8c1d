// Every batch goes through one of eight streams: copies and kernels overlap.
#include "honest.h"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::FILE* const file = std::fopen(argv[1], "rb");
    const Shape shape = read_shape(file);
    [[maybe_unused]] const size_t count = shape.count(), batch = size_t(shape.n) * shape.d;
    float *values, *input, *output;
    must(cudaMallocHost(&values, 4 * count * 4));
    read_values(file, values, 3 * count);
    must(cudaMalloc(&input, 3 * count * 4));
    must(cudaMalloc(&output, count * 4));
    std::vector<cudaStream_t> streams(8);
    for (auto& stream : streams) must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < shape.batches; ++i) {
        const cudaStream_t stream = streams[i % streams.size()];
        must(cudaMemcpyAsync(input + 3 * i * batch, values + 3 * i * batch, 3 * batch * 4, cudaMemcpyHostToDevice, stream));
        launch(input + 3 * i * batch, output + i * batch, 1, shape.n, shape.d, stream);
        must(cudaMemcpyAsync(values + 3 * count + i * batch, output + i * batch, batch * 4, cudaMemcpyDeviceToHost, stream));
    }
    must(cudaDeviceSynchronize());
    write_values(argv[2], values + 3 * count, count);
}
