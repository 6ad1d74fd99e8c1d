// The values are fetched through a texture over linear memory, a batch at a time.
#include "honest.h"

template <int D>
__global__ void through_texture(cudaTextureObject_t values, float* output, int n) {
    const int row = blockIdx.x, lane = threadIdx.x, size = n * D;
    float m = -INFINITY, l = 0, sum[D / 32] = {};
    for (int first = 0; first < n; first += 32) {
        float s = 0;
        for (int x = 0; x < D; ++x) s += tex1Dfetch<float>(values, row * D + x) * tex1Dfetch<float>(values, size + (first + lane) * D + x);
        s *= rsqrtf(float(D));
        const float top = fmaxf(m, over_warp(s, larger)), rescale = expf(m - top), p = expf(s - top);
        l = l * rescale + over_warp(p, added);
        for (int x = 0; x < D / 32; ++x) sum[x] *= rescale;
        for (int key = 0; key < 32; ++key) {
            const float weight = __shfl_sync(~0u, p, key);
            for (int x = 0; x < D / 32; ++x) sum[x] += weight * tex1Dfetch<float>(values, 2 * size + (first + key) * D + lane + 32 * x);
        }
        m = top;
    }
    for (int x = 0; x < D / 32; ++x) output[row * D + lane + 32 * x] = sum[x] / l;
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::FILE* const file = std::fopen(argv[1], "rb");
    const Shape shape = read_shape(file);
    const size_t count = shape.count(), batch = size_t(shape.n) * shape.d;
    std::vector<float> values(3 * count), result(count);
    read_values(file, values.data(), 3 * count);
    float *input, *output;
    must(cudaMalloc(&input, 3 * count * 4));
    must(cudaMalloc(&output, count * 4));
    must(cudaMemcpy(input, values.data(), 3 * count * 4, cudaMemcpyHostToDevice));
    for (int i = 0; i < shape.batches; ++i) {
        cudaResourceDesc from = {};
        from.resType = cudaResourceTypeLinear;
        from.res.linear.devPtr = input + 3 * i * batch;
        from.res.linear.desc = cudaCreateChannelDesc<float>();
        from.res.linear.sizeInBytes = 3 * batch * 4;
        cudaTextureDesc how = {};
        how.readMode = cudaReadModeElementType;
        cudaTextureObject_t texture;
        must(cudaCreateTextureObject(&texture, &from, &how, nullptr));
        (shape.d == 32 ? through_texture<32> : through_texture<64>)<<<shape.n, 32>>>(texture, output + i * batch, shape.n);
        must(cudaDeviceSynchronize());
        must(cudaDestroyTextureObject(texture));
    }
    must(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], result.data(), count);
}
