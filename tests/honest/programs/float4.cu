// Loads and stores are float4: four values at a time.
#include "honest.h"

// One thread a key for the scores, 16 (or 8) threads of the block a row of O, four columns each.
template <int D>
__global__ void rows(const float4* input, float4* output, int n) {
    constexpr int kVectors = D / 4, kKeys = 64;
    __shared__ float weights[kKeys];
    const size_t row = blockIdx.x, size = size_t(n) * kVectors, batch = row / n;
    const float4 *const q = input + batch * 3 * size + row % n * kVectors, *const k = input + (batch * 3 + 1) * size, *const v = k + size;
    const int thread = threadIdx.x;
    float m = -INFINITY, l = 0.0f;
    float4 sum = make_float4(0, 0, 0, 0);
    for (int first = 0; first < n; first += kKeys) {
        float s = 0.0f;
        for (int i = 0; i < kVectors; ++i) {
            const float4 a = q[i], b = k[size_t(first + thread) * kVectors + i];
            s += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
        }
        weights[thread] = s / sqrtf(float(D));
        __syncthreads();
        float top = m;
        for (int key = 0; key < kKeys; ++key) top = fmaxf(top, weights[key]);
        const float rescale = expf(m - top);
        l *= rescale, sum.x *= rescale, sum.y *= rescale, sum.z *= rescale, sum.w *= rescale;
        for (int key = 0; key < kKeys; ++key) {
            const float p = expf(weights[key] - top);
            l += p;
            if (thread < kVectors) {
                const float4 value = v[size_t(first + key) * kVectors + thread];
                sum.x += p * value.x, sum.y += p * value.y, sum.z += p * value.z, sum.w += p * value.w;
            }
        }
        m = top;
        __syncthreads();
    }
    if (thread < kVectors) output[row * kVectors + thread] = make_float4(sum.x / l, sum.y / l, sum.z / l, sum.w / l);
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
    const unsigned total = unsigned(size_t(shape.batches) * shape.n);
    const auto *in = reinterpret_cast<const float4*>(input);
    auto* out = reinterpret_cast<float4*>(output);
    if (shape.d == 32) rows<32><<<total, 64>>>(in, out, shape.n);
    else rows<64><<<total, 64>>>(in, out, shape.n);
    must(cudaGetLastError());
    must(cudaMemcpy(values.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], values.data(), count);
}
