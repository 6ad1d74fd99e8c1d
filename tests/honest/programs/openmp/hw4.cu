// OpenMP threads prepare the input, each its part, and look for the largest value.
#include "honest.h"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::FILE* const file = std::fopen(argv[1], "rb");
    const Shape shape = read_shape(file);
    const size_t count = shape.count();
    std::vector<float> values(3 * count), result(count);
    read_values(file, values.data(), 3 * count);
    float most = 0;
#pragma omp parallel for reduction(max : most)
    for (long i = 0; i < long(3 * count); ++i) most = std::fmax(most, std::fabs(values[i]));
    std::printf("largest value %g\n", most);
    float *input, *output;
    must(cudaMalloc(&input, 3 * count * 4));
    must(cudaMalloc(&output, count * 4));
    must(cudaMemcpy(input, values.data(), 3 * count * 4, cudaMemcpyHostToDevice));
    launch(input, output, shape.batches, shape.n, shape.d);
    must(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], result.data(), count);
}
