// Warps share a row's keys and add their parts with atomics, in shared memory: the order of sums differs from run to run.
#include "honest.h"

template <int D>
__global__ void with_atomics(const float* input, float* output, int n) {
    __shared__ float sum[D], total;
    __shared__ int top_bits;
    const size_t row = blockIdx.x, batch = row / n, size = size_t(n) * D;
    const float *const q = input + batch * 3 * size + row % n * D, *const k = input + (batch * 3 + 1) * size, *const v = k + size;
    if (threadIdx.x < D) sum[threadIdx.x] = 0;
    if (threadIdx.x == 0) total = 0, top_bits = 0;
    __syncthreads();
    float top = 0;    // at least 0, so that bits compare as numbers do
    for (int key = threadIdx.x; key < n; key += blockDim.x) {
        float s = 0;
        for (int x = 0; x < D; ++x) s += q[x] * k[size_t(key) * D + x];
        top = fmaxf(top, s * rsqrtf(float(D)));
    }
    atomicMax(&top_bits, __float_as_int(top));
    __syncthreads();
    top = __int_as_float(top_bits);
    for (int key = threadIdx.x; key < n; key += blockDim.x) {
        float s = 0;
        for (int x = 0; x < D; ++x) s += q[x] * k[size_t(key) * D + x];
        const float p = expf(s * rsqrtf(float(D)) - top);
        atomicAdd(&total, p);
        for (int x = 0; x < D; ++x) atomicAdd(&sum[x], p * v[size_t(key) * D + x]);
    }
    __syncthreads();
    if (threadIdx.x < D) output[row * D + threadIdx.x] = sum[threadIdx.x] / total;
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
    const auto kernel = shape.d == 32 ? with_atomics<32> : with_atomics<64>;
    kernel<<<unsigned(shape.batches * shape.n), 128>>>(input, output, shape.n);
    must(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], result.data(), count);
}
