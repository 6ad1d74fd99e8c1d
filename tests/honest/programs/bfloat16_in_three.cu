// Scores from bfloat16 products: each factor in two parts, three products for one.
#include "honest.h"
#include <cuda_bf16.h>

__device__ float product(float a, float b) {
    const __nv_bfloat16 a1 = __float2bfloat16_rn(a), b1 = __float2bfloat16_rn(b);
    const __nv_bfloat16 a2 = __float2bfloat16_rn(a - __bfloat162float(a1)), b2 = __float2bfloat16_rn(b - __bfloat162float(b1));
    return __bfloat162float(a1) * __bfloat162float(b1) + (__bfloat162float(a1) * __bfloat162float(b2) + __bfloat162float(a2) * __bfloat162float(b1));
}

template <int D>
__global__ void in_three(const float* input, float* output, int n) {
    const size_t row = blockIdx.x, batch = row / n, size = size_t(n) * D;
    const int lane = threadIdx.x;
    const float *const q = input + batch * 3 * size + row % n * D, *const k = input + (batch * 3 + 1) * size, *const v = k + size;
    float m = -INFINITY, l = 0, sum[D / 32] = {};
    for (int first = 0; first < n; first += 32) {
        float s = 0;
        for (int x = 0; x < D; ++x) s += product(q[x], k[size_t(first + lane) * D + x]);
        s *= rsqrtf(float(D));
        const float top = fmaxf(m, over_warp(s, larger)), rescale = expf(m - top), p = expf(s - top);
        l = l * rescale + over_warp(p, added);
        for (int x = 0; x < D / 32; ++x) sum[x] *= rescale;
        for (int key = 0; key < 32; ++key) {
            const float weight = __shfl_sync(~0u, p, key);
            for (int x = 0; x < D / 32; ++x) sum[x] += weight * v[size_t(first + key) * D + lane + 32 * x];
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
    const auto kernel = shape.d == 32 ? in_three<32> : in_three<64>;
    kernel<<<unsigned(shape.batches * shape.n), 32>>>(input, output, shape.n);
    must(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], result.data(), count);
}
