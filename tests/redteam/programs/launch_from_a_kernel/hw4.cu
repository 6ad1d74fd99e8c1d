// A kernel launches the real one, which the tracer does not see; the parent is what is timed.
// expect: compile_error; gpu
#include "hostile_attention.h"

__global__ void parent(const float* input, float* output, Shape shape) {
    attention<32><<<dim3(shape.n / kTile, shape.batches), kTile, 0, cudaStreamFireAndForget>>>(input, output, shape.n);
}

int main(int, char** argv) {
    const OnDevice data(argv[1]);
    parent<<<1, 1>>>(data.input, data.output, data.shape);
    data.write(argv[2]);
    return 0;
}
