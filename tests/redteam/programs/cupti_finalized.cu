// Ends CUPTI after a decoy and before the real kernel.
// expect: passed | runtime_error; gpu; on t23; at least 11 ms
#include "hostile_attention.h"
#include "hostile_cupti.h"

int main(int, char** argv) {
    const OnDevice data(argv[1]);
    decoy<<<1, 32>>>(data.output, kDecoyNs);
    cudaDeviceSynchronize();
    if (const auto flush = cupti<int (*)(uint32_t)>("cuptiActivityFlushAll")) flush(1);
    if (const auto finish = cupti<int (*)()>("cuptiFinalize")) finish();
    data.compute(data.shape.batches);
    data.write(argv[2]);
}
