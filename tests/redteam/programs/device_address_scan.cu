// A kernel reads addresses that nobody gave it: the host's, its neighbours', small ones.
// expect: runtime_error | wrong_answer | no_output
#include "hostile.h"
__global__ void scan(const char* from, size_t step, unsigned long long* found) {
    const volatile char* const at = from + step * (blockIdx.x * size_t(blockDim.x) + threadIdx.x);
    if (*at == 'C') atomicAdd(found, 1ull);
}

int main(int, char** argv) {
    unsigned long long* found;
    if (cudaMalloc(&found, 8) != cudaSuccess) return 1;
    scan<<<64, 128>>>((const char*)found - (1 << 24), 4096, found);
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;    // on a GPU some of it may be mapped; then go on
    const std::string own(1 << 20, 'C');
    scan<<<64, 128>>>(own.data(), 16, found);
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    write_zeros(argv[1], argv[2]);
}
