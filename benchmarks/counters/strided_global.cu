// Global memory read and written with a stride: how many 32-byte sectors does a request touch?
//
// Theory of operation. 64 blocks of 128 threads copy an array; thread t of the grid takes elements Stride · t + First.
// With First = 1 the lanes are neighbours but do not begin with a sector. The vector kernel takes 16 bytes a thread.
#include <cstdio>

#include <cuda_runtime.h>

constexpr int kBlocks = 64, kThreads = 128, kFloats = kBlocks * kThreads * 32 + 32;

template <int Stride, int First>
__global__ void copy(float* to, const float* from) {
    const int i = (blockIdx.x * kThreads + threadIdx.x) * Stride + First;
    to[i] = from[i] + 1;
}

template <int Stride>
__global__ void copy_vectors(float4* to, const float4* from) {
    const int i = (blockIdx.x * kThreads + threadIdx.x) * Stride;
    to[i] = from[i];
}

// Every lane reads what lane 0 reads, and a column of a square matrix is read across its rows.
__global__ void broadcast_and_column(float* to, const float* from, int width) {
    const int i = blockIdx.x * kThreads + threadIdx.x;
    to[i] = from[blockIdx.x] + from[threadIdx.x * width + blockIdx.x];
}

int main() {
    float *to, *from;
    cudaMalloc(&to, kFloats * sizeof(float));
    cudaMalloc(&from, kFloats * sizeof(float));
    cudaMemset(from, 0, kFloats * sizeof(float));
    copy<1, 0><<<kBlocks, kThreads>>>(to, from);
    copy<1, 1><<<kBlocks, kThreads>>>(to, from);
    copy<2, 0><<<kBlocks, kThreads>>>(to, from);
    copy<4, 0><<<kBlocks, kThreads>>>(to, from);
    copy<32, 0><<<kBlocks, kThreads>>>(to, from);
    copy_vectors<1><<<kBlocks, kThreads>>>(reinterpret_cast<float4*>(to), reinterpret_cast<float4*>(from));
    copy_vectors<4><<<kBlocks, kThreads>>>(reinterpret_cast<float4*>(to), reinterpret_cast<float4*>(from));
    broadcast_and_column<<<kBlocks, kThreads>>>(to, from, 256);
    const cudaError_t error = cudaDeviceSynchronize();
    std::printf("%s\n", cudaGetErrorString(error));
    return error != cudaSuccess;
}
