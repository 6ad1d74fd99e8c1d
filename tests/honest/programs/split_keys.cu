// Each row's keys are split among four warps of different blocks, and a second kernel puts their parts together.
#include "honest.h"

constexpr int kParts = 4;

template <int D>
__global__ void part_of_keys(const float* input, float* parts, int n) {
    const size_t row = blockIdx.x, batch = row / n, size = size_t(n) * D;
    const int lane = threadIdx.x, part = blockIdx.y;
    const float *const q = input + batch * 3 * size + row % n * D, *const k = input + (batch * 3 + 1) * size, *const v = k + size;
    float m = -INFINITY, l = 0, sum[D / 32] = {};
    for (int first = part * (n / kParts); first < (part + 1) * (n / kParts); first += 32) {
        float s = 0;
        for (int x = 0; x < D; ++x) s += q[x] * k[size_t(first + lane) * D + x];
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
    float* const here = parts + (row * kParts + part) * (D + 2);
    for (int x = 0; x < D / 32; ++x) here[lane + 32 * x] = sum[x];
    if (lane == 0) here[D] = m, here[D + 1] = l;
}

template <int D>
__global__ void put_together(const float* parts, float* output) {
    const float* const here = parts + size_t(blockIdx.x) * kParts * (D + 2);
    float m = -INFINITY, l = 0, sum = 0;
    for (int part = 0; part < kParts; ++part) m = fmaxf(m, here[part * (D + 2) + D]);
    for (int part = 0; part < kParts; ++part) {
        const float weight = expf(here[part * (D + 2) + D] - m);
        l += weight * here[part * (D + 2) + D + 1];
        sum += weight * here[part * (D + 2) + threadIdx.x];
    }
    output[size_t(blockIdx.x) * D + threadIdx.x] = sum / l;
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
    const unsigned rows = unsigned(shape.batches * shape.n);
    float* parts;
    must(cudaMalloc(&parts, size_t(rows) * kParts * (shape.d + 2) * 4));
    if (shape.d == 32) {
        part_of_keys<32><<<dim3(rows, kParts), 32>>>(input, parts, shape.n);
        put_together<32><<<rows, 32>>>(parts, output);
    } else {
        part_of_keys<64><<<dim3(rows, kParts), 32>>>(input, parts, shape.n);
        put_together<64><<<rows, 64>>>(parts, output);
    }
    must(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], result.data(), count);
}
