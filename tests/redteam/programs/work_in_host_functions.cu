// Functions in a stream compute on the processor between empty kernels, so that the GPU seems to wait for its work.
// expect: passed | time_limit; gpu; flagged; on t10
#include "hostile_attention.h"

static const char *input, *output;
static void CUDART_CB compute(void*) { write_right(input, output); }

int main(int, char** argv) {
    input = argv[1], output = argv[2];
    float* nowhere;
    cudaMalloc(&nowhere, 4);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    decoy<<<1, 32, 0, stream>>>(nowhere, kDecoyNs);
    cudaLaunchHostFunc(stream, compute, nullptr);
    decoy<<<1, 32, 0, stream>>>(nowhere, kDecoyNs);
    cudaStreamSynchronize(stream);
}
