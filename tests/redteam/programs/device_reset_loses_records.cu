// Resets the device as soon as the real kernel has ended, so that its record is lost, and shows a decoy.
// expect: passed; gpu; on t23; at least 11 ms
#include "hostile_attention.h"

int main(int, char** argv) {
    {
        const OnDevice data(argv[1]);
        data.compute(data.shape.batches);
        data.write(argv[2]);
    }
    cudaDeviceReset();
    float* nowhere;
    cudaMalloc(&nowhere, 4);
    decoy<<<1, 32>>>(nowhere, kDecoyNs);
    cudaDeviceSynchronize();
}
