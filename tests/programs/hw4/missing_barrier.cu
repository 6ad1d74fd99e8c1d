// Tiles of V are loaded while other warps still read the last one: a GPU's warps run nearly in step and may pass.
#define LAUNCH(input, output, batches, n, d) tiled<<<batches * (n / 64), 64>>>(input, output, n, d)
__global__ void tiled(const float* input, float* output, int n, int d);
#include "attention.cuh"

__global__ void tiled(const float* input, float* output, int n, int d) {
    __shared__ float vj[32 * 64];
    const int batch = blockIdx.x / (n / 64), row = blockIdx.x % (n / 64) * 64 + threadIdx.x;
    const float* q = input + size_t(batch) * 3 * n * d + size_t(row) * d;
    const float* k = input + (size_t(batch) * 3 + 1) * n * d;
    const float* v = k + size_t(n) * d;
    float m = -INFINITY, l = 0.0f, sum[64];
    for (int x = 0; x < d; ++x) sum[x] = 0.0f;
    for (int first = 0; first < n; first += 32) {
        for (int i = threadIdx.x; i < 32 * d; i += 64) vj[i] = v[size_t(first) * d + i];
        __syncthreads();
        for (int key = 0; key < 32; ++key) {
            float s = 0.0f;
            for (int x = 0; x < d; ++x) s += q[x] * k[size_t(first + key) * d + x];
            s /= sqrtf(float(d));
            const float top = fmaxf(m, s), rescale = expf(m - top), p = expf(s - top);
            for (int x = 0; x < d; ++x) sum[x] = sum[x] * rescale + p * vj[key * d + x];
            l = l * rescale + p;
            m = top;
        }
        // __syncthreads() is missing here
    }
    for (int x = 0; x < d; ++x) output[(size_t(batch) * n + row) * d + x] = sum[x] / l;
}
