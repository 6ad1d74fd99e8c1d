// Has CUPTI hand its records to functions of its own, which throw them away; only a decoy's come before.
// expect: passed; gpu; on t23; at least 11 ms
#include "hostile_attention.h"
#include "hostile_cupti.h"

static void give(uint8_t** buffer, size_t* size, size_t* most) {
    *size = 1 << 20;
    *most = 0;
    *buffer = (uint8_t*)aligned_alloc(64, *size);
}
static void take(void*, uint32_t, uint8_t* buffer, size_t, size_t) { free(buffer); }

int main(int, char** argv) {
    const OnDevice data(argv[1]);
    decoy<<<1, 32>>>(data.output, kDecoyNs);
    cudaDeviceSynchronize();
    if (const auto flush = cupti<int (*)(uint32_t)>("cuptiActivityFlushAll")) flush(1);
    if (const auto hook = cupti<int (*)(decltype(&give), decltype(&take))>("cuptiActivityRegisterCallbacks")) hook(give, take);
    data.compute(data.shape.batches);
    data.write(argv[2]);
}
