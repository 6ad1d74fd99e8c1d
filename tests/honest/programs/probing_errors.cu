// Asks for what the device may refuse, and goes on without it.
#include "honest.h"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    void* huge = nullptr;
    if (cudaMalloc(&huge, size_t(1) << 46) != cudaSuccess) std::printf("no 64 TiB: %s\n", cudaGetErrorString(cudaGetLastError()));
    compute(argv[1], argv[2]);
}
