// Computes in a handler that runs at exit after the tracer's own; before, only a decoy runs.
// expect: passed | no_output | wrong_answer | runtime_error; gpu; on t23; at least 11 ms
#include "hostile_attention.h"

static const char *input, *output;
static void late() {
    const OnDevice data(input);
    data.compute(data.shape.batches);
    data.write(output);
}
__attribute__((constructor(101))) static void first() { atexit(late); }    // what is registered first runs last

int main(int, char** argv) {
    input = argv[1], output = argv[2];
    float* nowhere;
    cudaMalloc(&nowhere, 4);
    decoy<<<1, 32>>>(nowhere, kDecoyNs);
    cudaDeviceSynchronize();
}
