// Tiles of K and V come to shared memory by cp.async, two tiles ahead.
#include "honest.h"
#include <cuda_pipeline.h>

template <int D>
__global__ void with_pipeline(const float* input, float* output, int n) {
    __shared__ alignas(16) float k[2][32 * D], v[2][32 * D];
    const int row = blockIdx.x * 32 + threadIdx.x, tiles = n / 32;
    const size_t size = size_t(n) * D;
    const float *const q = input + blockIdx.y * 3 * size + size_t(row) * D, *const keys = input + (blockIdx.y * 3 + 1) * size, *const values = keys + size;
    const auto fetch = [&](int tile) {
        for (int i = threadIdx.x * 4; i < 32 * D; i += 128) {
            __pipeline_memcpy_async(&k[tile % 2][i], keys + size_t(tile) * 32 * D + i, 16);
            __pipeline_memcpy_async(&v[tile % 2][i], values + size_t(tile) * 32 * D + i, 16);
        }
        __pipeline_commit();
    };
    float m = -INFINITY, l = 0, sum[D] = {};
    fetch(0);
    for (int tile = 0; tile < tiles; ++tile) {
        if (tile + 1 < tiles) fetch(tile + 1);
        __pipeline_wait_prior(tile + 1 < tiles);
        __syncthreads();
        for (int key = 0; key < 32; ++key) {
            float s = 0;
            for (int x = 0; x < D; ++x) s += q[x] * k[tile % 2][key * D + x];
            s *= rsqrtf(float(D));
            const float top = fmaxf(m, s), rescale = expf(m - top), p = expf(s - top);
            l = l * rescale + p;
            for (int x = 0; x < D; ++x) sum[x] = sum[x] * rescale + p * v[tile % 2][key * D + x];
            m = top;
        }
        __syncthreads();
    }
    for (int x = 0; x < D; ++x) output[blockIdx.y * size + size_t(row) * D + x] = sum[x] / l;
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
    const auto kernel = shape.d == 32 ? with_pipeline<32> : with_pipeline<64>;
    kernel<<<dim3(shape.n / 32, shape.batches), 32>>>(input, output, shape.n);
    must(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], result.data(), count);
}
