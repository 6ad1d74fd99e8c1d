// One launch and one synchronisation for each batch, with the batch's own copies.
#include "honest.h"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::FILE* const file = std::fopen(argv[1], "rb");
    const Shape shape = read_shape(file);
    const size_t count = shape.count(), batch = size_t(shape.n) * shape.d;
    std::vector<float> values(3 * count), result(count);
    read_values(file, values.data(), 3 * count);
    float *input, *output;
    must(cudaMalloc(&input, 3 * batch * 4));
    must(cudaMalloc(&output, batch * 4));
    for (int i = 0; i < shape.batches; ++i) {
        must(cudaMemcpy(input, &values[3 * i * batch], 3 * batch * 4, cudaMemcpyHostToDevice));
        launch(input, output, 1, shape.n, shape.d);
        must(cudaDeviceSynchronize());
        must(cudaMemcpy(&result[i * batch], output, batch * 4, cudaMemcpyDeviceToHost));
    }
    write_values(argv[2], result.data(), count);
}
