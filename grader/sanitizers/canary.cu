// One known fault for each tool of compute-sanitizer. A tool that does not find its fault here instruments nothing on
// this machine, so finding nothing in a submission proves nothing.
//
// Usage: canary memory|race|init|sync
#include <cstring>

#include <cuda_runtime.h>

__global__ void out_of_bounds(int* data) { data[threadIdx.x + 1] = 1; }    // one past the end

__global__ void race(int* data) {
    __shared__ int shared[64];
    shared[threadIdx.x] = data[threadIdx.x];
    data[threadIdx.x] = shared[63 - threadIdx.x];    // without a barrier before it
}

__global__ void uninitialised(int* data, const int* never_written) { data[threadIdx.x] = never_written[threadIdx.x]; }

__global__ void wrong_mask(int* data) {
    const unsigned lower = __ballot_sync(0xffffffffu, threadIdx.x < 16);
    if (threadIdx.x < 16) {
        __syncwarp(lower);
        data[threadIdx.x] = 1;
    }
    __syncwarp(lower);    // lanes 16 to 31 come here too
    data[threadIdx.x] += 1;
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    int *data, *never_written;
    if (cudaMalloc(&data, 64 * sizeof(int)) != cudaSuccess) return 1;
    if (cudaMalloc(&never_written, 64 * sizeof(int)) != cudaSuccess) return 1;
    cudaMemset(data, 0, 64 * sizeof(int));
    if (!std::strcmp(argv[1], "memory")) out_of_bounds<<<1, 64>>>(data);
    if (!std::strcmp(argv[1], "race")) race<<<1, 64>>>(data);
    if (!std::strcmp(argv[1], "init")) uninitialised<<<1, 64>>>(data, never_written);
    if (!std::strcmp(argv[1], "sync")) wrong_mask<<<1, 32>>>(data);
    cudaDeviceSynchronize();
    return 0;
}
