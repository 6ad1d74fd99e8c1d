// Functions that the emulator lacks: named when the program is linked.
#include <cuda_runtime.h>
extern "C" cudaError_t cudaGraphicsGLRegisterBuffer(cudaGraphicsResource **, unsigned, unsigned);
extern "C" int cuMemCreate(unsigned long long *, size_t, const void *, unsigned long long);
extern "C" int cuInit(unsigned);
int main() {
    cudaGraphicsResource *resource;
    cudaGraphicsGLRegisterBuffer(&resource, 0, 0);
    unsigned long long handle;
    cuMemCreate(&handle, 1, nullptr, 0);
    return cuInit(0);
}
