// Asks the device for everything it says of itself, and chooses by that.
#include "honest.h"

int main(int argc, char** argv) {
    int devices, driver, runtime;
    must(cudaGetDeviceCount(&devices));
    must(cudaDriverGetVersion(&driver));
    must(cudaRuntimeGetVersion(&runtime));
    cudaDeviceProp facts;
    must(cudaGetDeviceProperties(&facts, devices - 1));
    must(cudaSetDevice(devices - 1));
    size_t free_bytes, all_bytes, heap, fifo;
    must(cudaMemGetInfo(&free_bytes, &all_bytes));
    must(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
    must(cudaDeviceGetLimit(&fifo, cudaLimitPrintfFifoSize));
    must(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, fifo));
    std::printf("%s, %d.%d, CUDA %d and %d, %zu of %zu bytes free, heap %zu\n", facts.name, facts.major, facts.minor, driver, runtime,
                free_bytes, all_bytes, heap);
    if (argc != 3) return 2;
    compute(argv[1], argv[2], facts.multiProcessorCount > 16 ? 4 : 8);
}
