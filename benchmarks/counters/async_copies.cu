// Copies from global to shared memory that no register sees (cp.async): how many sectors does a request read?
//
// Theory of operation. 64 blocks of 128 threads copy 16 bytes a thread, eight times. Pieces are 16 bytes: piece p of
// the source goes to row p / Row, column p % Row of the target, whose rows begin Stride pieces apart, and both begin
// Source and Target pieces behind a multiple of 128 bytes. A warp reads 512 consecutive bytes, 16 sectors or 17.
#include <cstdio>

#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

constexpr int kBlocks = 64, kThreads = 128, kRounds = 8, kPieces = kThreads * kRounds;

template <int Source, int Target, int Row, int Stride>
__global__ void copy(const float4* in, float4* out) {
    extern __shared__ float4 tile[];
    for (int i = 0; i < kRounds; ++i) {
        const int piece = i * kThreads + threadIdx.x;
        __pipeline_memcpy_async(tile + Target + piece / Row * Stride + piece % Row, in + Source + piece, 16);
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[blockIdx.x * kThreads + threadIdx.x] = tile[Target + threadIdx.x];
}

template <int Source, int Target, int Row, int Stride>
void run(const float4* in, float4* out) {
    const int bytes = (kPieces / Row * Stride + Target) * int(sizeof(float4));
    cudaFuncSetAttribute(copy<Source, Target, Row, Stride>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    copy<Source, Target, Row, Stride><<<kBlocks, kThreads, bytes>>>(in, out);
}

int main() {
    float4 *in, *out;
    cudaMalloc(&in, (kPieces + 8) * sizeof(float4));
    cudaMalloc(&out, kBlocks * kThreads * sizeof(float4));
    cudaMemset(in, 0, (kPieces + 8) * sizeof(float4));
    run<0, 0, 32, 32>(in, out);
    run<0, 1, 32, 32>(in, out);
    run<0, 2, 32, 32>(in, out);
    run<0, 3, 32, 32>(in, out);
    run<0, 4, 32, 32>(in, out);
    run<1, 0, 32, 32>(in, out);
    run<1, 1, 32, 32>(in, out);
    run<2, 0, 32, 32>(in, out);
    run<0, 0, 16, 17>(in, out);
    run<0, 0, 16, 18>(in, out);
    run<0, 0, 8, 9>(in, out);
    run<0, 0, 4, 5>(in, out);
    run<0, 0, 2, 3>(in, out);
    run<0, 0, 1, 2>(in, out);
    const cudaError_t error = cudaDeviceSynchronize();
    std::printf("%s\n", cudaGetErrorString(error));
    return error != cudaSuccess;
}
