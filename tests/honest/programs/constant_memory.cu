// What every thread needs lies in constant memory.
#include "honest.h"

struct Problem { const float* input; float* output; int n, d; size_t rows; };
__constant__ Problem problem;

__global__ void from_constants() {
    const size_t row = blockIdx.x * size_t(blockDim.x / 32) + threadIdx.x / 32;
    if (row >= problem.rows) return;
    if (problem.d == 32)
        attention_row<32>(problem.input, problem.output, problem.n, row);
    else
        attention_row<64>(problem.input, problem.output, problem.n, row);
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
    const Problem here = {input, output, shape.n, shape.d, size_t(shape.batches) * shape.n};
    must(cudaMemcpyToSymbol(problem, &here, sizeof here));
    from_constants<<<unsigned((here.rows + 3) / 4), 128>>>();
    must(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], result.data(), count);
}
