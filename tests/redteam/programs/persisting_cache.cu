// Keeps its input in a part of the second-level cache that outlives it, for the runs that follow.
// expect: passed; gpu; on t23; at least 11 ms
#include "hostile_attention.h"

int main(int, char** argv) {
    cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 64 << 20);
    const OnDevice data(argv[1]);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaStreamAttrValue value = {};
    value.accessPolicyWindow = {data.input, std::min<size_t>(3 * data.shape.count() * 4, 64 << 20), 1.0f, cudaAccessPropertyPersisting, cudaAccessPropertyStreaming};
    cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value);
    data.compute(data.shape.batches, 0, stream);
    cudaStreamSynchronize(stream);
    data.write(argv[2]);
}
