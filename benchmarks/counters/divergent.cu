// Branches on which the lanes of a warp part: how many lanes work on average?
//
// Theory of operation. 64 blocks of 128 threads. In `halves`, groups of Lanes lanes take one way or the other; at 32
// whole warps decide and nothing diverges. In `trips`, lane l of a warp goes round a loop l + 1 times. `early` ends
// half the threads at once. Each side has a loop with a load, so that the compiler keeps a branch and makes no select.
#include <cstdio>

#include <cuda_runtime.h>

constexpr int kBlocks = 64, kThreads = 128, kFloats = kBlocks * kThreads;

template <int Lanes>
__global__ void halves(float* to, const float* from, int rounds) {
    const int i = blockIdx.x * kThreads + threadIdx.x;
    float x = from[i];
    if (threadIdx.x / Lanes % 2 == 0) {
#pragma unroll 1
        for (int k = 0; k < rounds; ++k) x = x * 1.5f + from[(i + k) % kFloats];
    } else {
#pragma unroll 1
        for (int k = 0; k < rounds; ++k) x = x * 0.5f - from[(i + 2 * k) % kFloats];
    }
    to[i] = x;
}

__global__ void trips(float* to, const float* from) {
    const int i = blockIdx.x * kThreads + threadIdx.x;
    float x = 0;
#pragma unroll 1
    for (int k = 0; k <= i % 32; ++k) x += from[(i + k) % kFloats];
    to[i] = x;
}

__global__ void early(float* to, const float* from) {
    const int i = blockIdx.x * kThreads + threadIdx.x;
    if (i % 2 == 0) return;
    float x = from[i];
#pragma unroll 1
    for (int k = 0; k < 8; ++k) x = x * x + 0.25f;
    to[i] = x;
}

int main() {
    float *to, *from;
    cudaMalloc(&to, kFloats * sizeof(float));
    cudaMalloc(&from, kFloats * sizeof(float));
    cudaMemset(from, 0, kFloats * sizeof(float));
    halves<1><<<kBlocks, kThreads>>>(to, from, 8);
    halves<16><<<kBlocks, kThreads>>>(to, from, 8);
    halves<32><<<kBlocks, kThreads>>>(to, from, 8);
    trips<<<kBlocks, kThreads>>>(to, from);
    early<<<kBlocks, kThreads>>>(to, from);
    const cudaError_t error = cudaDeviceSynchronize();
    std::printf("%s\n", cudaGetErrorString(error));
    return error != cudaSuccess;
}
