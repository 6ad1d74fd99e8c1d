// Scores come from tensor cores in half precision, each value split into two halves to keep its precision.
#include <cuda_fp16.h>
#include <mma.h>
#include "honest.h"

using namespace nvcuda;

// A warp computes 16 rows of O. Scores of 16 x 16 tiles: (a + a') (b + b') without a' b', where a' is what half precision
// loses of a. Then lane i and i + 16 do the softmax and half of the columns each of row i.
template <int D>
__global__ void rows(const float* input, float* output, int n) {
    __shared__ __half q_high[16 * D], q_low[16 * D], k_high[16 * D], k_low[16 * D];
    __shared__ float scores[256], sums[16 * D];
    const int lane = threadIdx.x, row = lane % 16, part = lane / 16 * (D / 2);
    const size_t tile = blockIdx.x, size = size_t(n) * D, batch = tile * 16 / n;
    const float *const q = input + batch * 3 * size + tile * 16 % n * D, *const k = input + (batch * 3 + 1) * size, *const v = k + size;
    for (int i = lane; i < 16 * D; i += 32) {
        const float value = q[i] / sqrtf(float(D));
        q_high[i] = __float2half(value);
        q_low[i] = __float2half(value - __half2float(q_high[i]));
        sums[i] = 0.0f;
    }
    float m = -INFINITY, l = 0.0f;
    for (int first = 0; first < n; first += 16) {
        for (int i = lane; i < 16 * D; i += 32) {
            const float value = k[size_t(first) * D + i];
            k_high[i] = __float2half(value);
            k_low[i] = __float2half(value - __half2float(k_high[i]));
        }
        __syncwarp();
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> product;
        wmma::fill_fragment(product, 0.0f);
        for (int x = 0; x < D; x += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a, a_rest;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b, b_rest;
            wmma::load_matrix_sync(a, q_high + x, D);
            wmma::load_matrix_sync(a_rest, q_low + x, D);
            wmma::load_matrix_sync(b, k_high + x, D);
            wmma::load_matrix_sync(b_rest, k_low + x, D);
            wmma::mma_sync(product, a, b, product);
            wmma::mma_sync(product, a_rest, b, product);
            wmma::mma_sync(product, a, b_rest, product);
        }
        wmma::store_matrix_sync(scores, product, 16, wmma::mem_row_major);
        __syncwarp();
        float top = m;
        for (int key = 0; key < 16; ++key) top = fmaxf(top, scores[row * 16 + key]);
        const float rescale = expf(m - top);
        l *= rescale;
        for (int x = part; x < part + D / 2; ++x) sums[row * D + x] *= rescale;
        for (int key = 0; key < 16; ++key) {
            const float p = expf(scores[row * 16 + key] - top);
            l += p;
            for (int x = part; x < part + D / 2; ++x) sums[row * D + x] += p * v[size_t(first + key) * D + x];
        }
        m = top;
        __syncwarp();
    }
    for (int x = part; x < part + D / 2; ++x) output[(tile * 16 + row) * D + x] = sums[row * D + x] / l;
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::FILE* const file = std::fopen(argv[1], "rb");
    const Shape shape = read_shape(file);
    [[maybe_unused]] const size_t count = shape.count(), batch = size_t(shape.n) * shape.d;
    std::vector<float> values(3 * count);
    read_values(file, values.data(), 3 * count);
    float *input, *output;
    must(cudaMalloc(&input, 3 * count * 4));
    must(cudaMalloc(&output, count * 4));
    must(cudaMemcpy(input, values.data(), 3 * count * 4, cudaMemcpyHostToDevice));
    const unsigned tiles = unsigned(size_t(shape.batches) * shape.n / 16);
    if (shape.d == 32) rows<32><<<tiles, 32>>>(input, output, shape.n);
    else rows<64><<<tiles, 32>>>(input, output, shape.n);
    must(cudaGetLastError());
    must(cudaMemcpy(values.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], values.data(), count);
}
