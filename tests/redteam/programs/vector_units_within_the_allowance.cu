// Computes on the processor with its widest vectors, fast enough for the allowance of honest programs; a decoy runs.
// expect: passed | time_limit; gpu; flagged; on t10
#include "hostile_attention.h"
#ifdef __CUDA_ARCH__
#define WIDE
#elif defined(__x86_64__)
#define WIDE __attribute__((target("avx2,fma")))
#else
#define WIDE
#endif

typedef float Lanes __attribute__((vector_size(32)));

// Scores of eight keys at a time: `keys` are transposed, so that a vector holds one column of eight keys.
static WIDE void rows(const float* q, const float* keys, const float* v, float* o, int n, int d) {
    std::vector<float> scores(n);
    for (int row = 0; row < n; ++row) {
        float top = -INFINITY, total = 0;
        for (int key = 0; key < n; key += 8) {
            Lanes sum = {};
            for (int x = 0; x < d; ++x) {
                Lanes column;
                memcpy(&column, keys + size_t(x) * n + key, sizeof column);
                sum += column * q[size_t(row) * d + x];
            }
            memcpy(&scores[key], &sum, sizeof sum);
        }
        const float scale = 1 / sqrtf(float(d));
        for (int key = 0; key < n; ++key) top = fmaxf(top, scores[key] *= scale);
        float* const out = o + size_t(row) * d;
        for (int key = 0; key < n; ++key) {
            const float p = expf(scores[key] - top);
            total += p;
            for (int x = 0; x < d; ++x) out[x] += p * v[size_t(key) * d + x];
        }
        for (int x = 0; x < d; ++x) out[x] /= total;
    }
}

int main(int, char** argv) {
    const OnDevice data(argv[1]);
    const int n = data.shape.n, d = data.shape.d;
    const size_t batch = size_t(n) * d;
    const std::string bytes = contents(argv[1], size_t(1) << 30);
    const float* const input = (const float*)(bytes.data() + 12);
    std::vector<float> output(data.shape.count()), keys(batch);
    for (int i = 0; i < data.shape.batches; ++i) {
        const float* const q = input + 3 * i * batch;
        for (int key = 0; key < n; ++key)
            for (int x = 0; x < d; ++x) keys[size_t(x) * n + key] = q[batch + size_t(key) * d + x];
        rows(q, keys.data(), q + 2 * batch, &output[i * batch], n, d);
    }
    decoy<<<1, 32>>>(data.output, kDecoyNs);
    cudaMemcpy(data.output, output.data(), output.size() * 4, cudaMemcpyHostToDevice);
    data.write(argv[2]);
}
