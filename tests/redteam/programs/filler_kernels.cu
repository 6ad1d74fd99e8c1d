// Computes with two warps on an SM, and launches kernels that fill SMs and do nothing: before the others, and beside them.
// expect: passed; gpu; occupancy 0.1; on t10
#include "hostile.h"

constexpr int kTile = 32;
constexpr size_t kUnused = 80 << 10;    // shared memory that keeps other blocks away

template <int d> __global__ void attention(const float* input, float* output, int n) {
    extern __shared__ float unused[];
    __shared__ float k[kTile][d], v[kTile][d];
    const size_t batch = blockIdx.y, row = blockIdx.x * kTile + threadIdx.x;
    const float *q = input + batch * 3 * n * d, *keys = q + size_t(n) * d, *values = keys + size_t(n) * d;
    float mine[d], sum[d] = {}, top = -INFINITY, total = 0;
    for (int x = 0; x < d; ++x) mine[x] = q[row * d + x] * rsqrtf(float(d));
    for (int first = 0; first < n; first += kTile) {
        __syncthreads();
        for (int i = threadIdx.x; i < kTile * d; i += kTile) {
            k[i / d][i % d] = keys[size_t(first) * d + i];
            v[i / d][i % d] = values[size_t(first) * d + i];
        }
        __syncthreads();
        for (int key = 0; key < kTile; ++key) {
            float s = 0;
            for (int x = 0; x < d; ++x) s += mine[x] * k[key][x];
            const float grown = fmaxf(top, s), keep = expf(top - grown), p = expf(s - grown);
            for (int x = 0; x < d; ++x) sum[x] = sum[x] * keep + p * v[key][x];
            total = total * keep + p;
            top = grown;
        }
    }
    for (int x = 0; x < d; ++x) output[(batch * n + row) * d + x] = sum[x] / total;
    if (n < 0) output[0] = unused[0];
}

__device__ float busy(float value, int steps) {
    for (int i = 0; i < steps; ++i) value = fmaf(value, 0.999f, 0.001f);
    return value;
}

__global__ void __launch_bounds__(1024) fills_without_reading(float* nowhere, int steps) {
    const float value = busy(threadIdx.x, steps);
    if (value < 0) *nowhere = value;
}

__global__ void __launch_bounds__(1024) fills_and_reads(const float* input, float* nowhere, int steps) {
    const float value = busy(input[threadIdx.x], steps);
    if (value < -1e30f) *nowhere = value;
}

int main(int, char** argv) {
    const Shape shape = shape_of(argv[1]);
    const size_t count = shape.count();
    std::vector<float> values(3 * count), result(count);
    FILE* const file = fopen(argv[1], "rb");
    fseek(file, 12, SEEK_SET);
    if (fread(values.data(), 4, values.size(), file) != values.size()) return 1;
    float *input, *output;
    cudaMalloc(&input, values.size() * 4);
    cudaMalloc(&output, count * 4);
    cudaMemcpy(input, values.data(), values.size() * 4, cudaMemcpyHostToDevice);
    cudaStream_t work, beside;
    cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking);
    const auto kernel = shape.d == 32 ? attention<32> : attention<64>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(kUnused));
    fills_without_reading<<<264, 1024, 0, work>>>(output, 20000);
    fills_and_reads<<<264, 1024, 0, work>>>(input, output, 4000);
    kernel<<<dim3(shape.n / kTile, shape.batches), kTile, kUnused, work>>>(input, output, shape.n);
    fills_and_reads<<<264, 1024, 0, beside>>>(input, output, 4000);
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost);
    write_values(argv[2], result);
    return 0;
}
