// Computes in streams of low priority that do not wait for the one that is shown, and are never waited for by name.
// expect: passed; gpu; on t23; at least 11 ms
#include "hostile_attention.h"

int main(int, char** argv) {
    const OnDevice data(argv[1]);
    const size_t batch = size_t(data.shape.n) * data.shape.d;
    int low, high;
    cudaDeviceGetStreamPriorityRange(&low, &high);
    for (int i = 0; i < data.shape.batches; ++i) {
        cudaStream_t stream;
        cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, low);
        OnDevice part = data;
        part.input += 3 * i * batch;
        part.output += i * batch;
        part.compute(1, 0, stream);
    }
    decoy<<<1, 32>>>(data.output, 1000);
    data.write(argv[2]);
}
