// Runtime functions that the emulator lacks: named when the program is linked.
#include <cuda_runtime.h>
int main() {
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
    cudaMallocArray(&array, &format, 16, 16, 0);
    cudaIpcMemHandle_t handle;
    cudaIpcGetMemHandle(&handle, array);
    return 0;
}
