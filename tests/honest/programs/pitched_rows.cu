// Rows lie in pitched memory, copied with cudaMemcpy2D both ways.
#include "honest.h"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::FILE* const file = std::fopen(argv[1], "rb");
    const Shape shape = read_shape(file);
    const size_t count = shape.count();
    std::vector<float> values(3 * count), result(count);
    read_values(file, values.data(), 3 * count);
    const size_t row = shape.d * 4, rows = count / shape.d;
    float *pitched, *input, *output;
    size_t pitch;
    must(cudaMallocPitch(&pitched, &pitch, row, 3 * rows));
    must(cudaMalloc(&input, 3 * count * 4));
    must(cudaMalloc(&output, count * 4));
    must(cudaMemcpy2D(pitched, pitch, values.data(), row, row, 3 * rows, cudaMemcpyHostToDevice));
    must(cudaMemcpy2D(input, row, pitched, pitch, row, 3 * rows, cudaMemcpyDeviceToDevice));
    launch(input, output, shape.batches, shape.n, shape.d);
    must(cudaMemcpy2D(result.data(), row, output, row, row, rows, cudaMemcpyDeviceToHost));
    write_values(argv[2], result.data(), count);
}
