// V and the weights are kept in half precision, sums in single: within the tolerance.
#include "honest.h"
#include <cuda_fp16.h>

__global__ void narrow(const float* input, __half* v, int n, int d, size_t count) {
    const size_t size = size_t(n) * d;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x)
        v[i] = __float2half_rn(input[(i / size * 3 + 2) * size + i % size]);
}

template <int D>
__global__ void with_half(const float* input, const __half* values, float* output, int n, size_t rows) {
    const size_t row = blockIdx.x * size_t(blockDim.x / 32) + threadIdx.x / 32, batch = row / n, size = size_t(n) * D;
    if (row >= rows) return;
    const int lane = threadIdx.x % 32;
    const float *const q = input + batch * 3 * size + row % n * D, *const k = input + (batch * 3 + 1) * size;
    const __half* const v = values + batch * size;
    float m = -INFINITY, l = 0, sum[D / 32] = {};
    for (int first = 0; first < n; first += 32) {
        float s = 0;
        for (int x = 0; x < D; ++x) s += q[x] * k[size_t(first + lane) * D + x];
        s *= rsqrtf(float(D));
        const float top = fmaxf(m, over_warp(s, larger)), rescale = expf(m - top);
        const __half p = __float2half_rn(expf(s - top));
        l = l * rescale + over_warp(__half2float(p), added);
        for (int x = 0; x < D / 32; ++x) sum[x] *= rescale;
        for (int key = 0; key < 32; ++key) {
            const __half weight = __shfl_sync(~0u, p, key);
            for (int x = 0; x < D / 32; ++x) sum[x] += __half2float(weight) * __half2float(v[size_t(first + key) * D + lane + 32 * x]);
        }
        m = top;
    }
    for (int x = 0; x < D / 32; ++x) output[row * D + lane + 32 * x] = sum[x] / l;
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::FILE* const file = std::fopen(argv[1], "rb");
    const Shape shape = read_shape(file);
    const size_t count = shape.count();
    std::vector<float> values(3 * count), result(count);
    read_values(file, values.data(), 3 * count);
    float *input, *output;
    must(cudaMalloc(&input, 3 * count * 4));
    must(cudaMalloc(&output, count * 4));
    must(cudaMemcpy(input, values.data(), 3 * count * 4, cudaMemcpyHostToDevice));
    __half* v;
    must(cudaMalloc(&v, count * sizeof(__half)));
    narrow<<<64, 256>>>(input, v, shape.n, shape.d, count);
    const size_t rows = size_t(shape.batches) * shape.n;
    const auto kernel = shape.d == 32 ? with_half<32> : with_half<64>;
    kernel<<<unsigned((rows + 3) / 4), 128>>>(input, v, output, shape.n, rows);
    must(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], result.data(), count);
}
