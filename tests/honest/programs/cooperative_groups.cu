// Warps are tiles of cooperative groups, with its reductions.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include "honest.h"

namespace cg = cooperative_groups;

template <int D>
__global__ void rows(const float* input, float* output, int n, size_t total) {
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const size_t row = blockIdx.x * size_t(warp.meta_group_size()) + warp.meta_group_rank(), size = size_t(n) * D;
    if (row >= total) return;
    const size_t batch = row / n;
    const float *const q = input + batch * 3 * size + row % n * D, *const k = input + (batch * 3 + 1) * size, *const v = k + size;
    float m = -INFINITY, l = 0.0f, low = 0.0f, high = 0.0f;
    for (int first = 0; first < n; first += 32) {
        float s = 0.0f;
        for (int x = 0; x < D; ++x) s += q[x] * k[size_t(first + warp.thread_rank()) * D + x];
        s *= rsqrtf(float(D));
        const float top = fmaxf(m, cg::reduce(warp, s, cg::greater<float>())), rescale = expf(m - top), p = expf(s - top);
        l = l * rescale + cg::reduce(warp, p, cg::plus<float>());
        low *= rescale, high *= rescale;
        for (int key = 0; key < 32; ++key) {
            const float weight = warp.shfl(p, key);
            low += weight * v[size_t(first + key) * D + warp.thread_rank()];
            if (D == 64) high += weight * v[size_t(first + key) * D + warp.thread_rank() + 32];
        }
        m = top;
    }
    output[row * D + warp.thread_rank()] = low / l;
    if (D == 64) output[row * D + warp.thread_rank() + 32] = high / l;
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
    const size_t total = size_t(shape.batches) * shape.n;
    if (shape.d == 32) rows<32><<<unsigned(total / 4), 128>>>(input, output, shape.n, total);
    else rows<64><<<unsigned(total / 4), 128>>>(input, output, shape.n, total);
    must(cudaGetLastError());
    must(cudaMemcpy(values.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], values.data(), count);
}
