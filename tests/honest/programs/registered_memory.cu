// Host memory is pinned after the fact.
#include "honest.h"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::FILE* const file = std::fopen(argv[1], "rb");
    const Shape shape = read_shape(file);
    [[maybe_unused]] const size_t count = shape.count(), batch = size_t(shape.n) * shape.d;
    std::vector<float> values(3 * count), result(count);
    read_values(file, values.data(), 3 * count);
    must(cudaHostRegister(values.data(), 3 * count * 4, cudaHostRegisterDefault));
    float *input, *output;
    must(cudaMalloc(&input, 3 * count * 4));
    must(cudaMalloc(&output, count * 4));
    must(cudaMemcpyAsync(input, values.data(), 3 * count * 4, cudaMemcpyHostToDevice));
    launch(input, output, shape.batches, shape.n, shape.d);
    must(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost));
    must(cudaHostUnregister(values.data()));
    write_values(argv[2], result.data(), count);
}
