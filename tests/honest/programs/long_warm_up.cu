// Warms up with twenty launches and times another, all on the first batch, before the real one.
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
    for (int i = 0; i < 20; ++i) launch(input, output, 1, shape.n, shape.d);
    cudaEvent_t begin, end;
    must(cudaEventCreate(&begin));
    must(cudaEventCreate(&end));
    must(cudaEventRecord(begin));
    launch(input, output, 1, shape.n, shape.d);
    must(cudaEventRecord(end));
    must(cudaEventSynchronize(end));
    float ms;
    must(cudaEventElapsedTime(&ms, begin, end));
    std::printf("one batch: %.3f ms\n", ms);
    launch(input, output, shape.batches, shape.n, shape.d);
    must(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], result.data(), count);
}
