// Shared memory read and written with a stride: how many wavefronts does a request take?
//
// Theory of operation. 64 blocks of 128 threads. Thread t reads and writes words t · Stride of a tile that is Stride
// times as long as a block, so that the lanes of a warp meet in 32 / gcd(Stride, 32) banks. A volatile pointer keeps
// every load and store, one word each. The vector kernels do the same with 8 and 16 bytes a lane, where half-warps and
// quarter-warps are served one after the other; Share neighbouring lanes then read the same element.
#include <cstdio>

#include <cuda_runtime.h>

constexpr int kBlocks = 64, kThreads = 128, kRounds = 16;

template <int Stride>
__global__ void words(float* out) {
    extern __shared__ float tile[];
    volatile float* const mine = tile + threadIdx.x * Stride;
    *mine = threadIdx.x;
    float sum = 0;
    for (int i = 0; i < kRounds; ++i) {
        sum += *mine;
        *mine = sum;
    }
    out[blockIdx.x * kThreads + threadIdx.x] = sum;
}

template <typename Vector, int Stride, int Share>
__global__ void vectors(float* out) {
    extern __shared__ float4 memory[];
    Vector* const tile = reinterpret_cast<Vector*>(memory);
    for (int i = threadIdx.x; i < kThreads * Stride; i += kThreads) tile[i].x = tile[i].y = i;
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < kRounds; ++i) {
        const Vector x = tile[(threadIdx.x / Share + i) % kThreads * Stride];
        sum += x.x * x.y;
    }
    out[blockIdx.x * kThreads + threadIdx.x] = sum;
}

template <int Stride>
void run_words(float* out) {
    const int bytes = kThreads * Stride * int(sizeof(float));
    words<Stride><<<kBlocks, kThreads, bytes>>>(out);
}

template <typename Vector, int Stride, int Share>
void run_vectors(float* out) {
    const int bytes = kThreads * Stride * int(sizeof(Vector));
    vectors<Vector, Stride, Share><<<kBlocks, kThreads, bytes>>>(out);
}

int main() {
    float* out;
    cudaMalloc(&out, kBlocks * kThreads * sizeof(float));
    run_words<1>(out);
    run_words<2>(out);
    run_words<8>(out);
    run_words<32>(out);
    run_words<33>(out);
    run_vectors<float2, 1, 1>(out);
    run_vectors<float2, 1, 2>(out);
    run_vectors<float2, 4, 1>(out);
    run_vectors<float4, 1, 1>(out);
    run_vectors<float4, 1, 2>(out);
    run_vectors<float4, 1, 32>(out);
    run_vectors<float4, 5, 1>(out);
    const cudaError_t error = cudaDeviceSynchronize();
    std::printf("%s\n", cudaGetErrorString(error));
    return error != cudaSuccess;
}
