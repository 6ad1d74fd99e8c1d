// Computes on the processor with its widest vectors, as fast as it can; a decoy runs as long as a GPU might need.
// expect: passed | time_limit; gpu; flagged; on t26
#include "hostile_attention.h"

#ifndef __CUDA_ARCH__
#ifdef __x86_64__
#define WIDE __attribute__((target("avx512f,avx512dq,fma")))
#else
#define WIDE
#endif
typedef float Lanes __attribute__((vector_size(64)));
typedef int Words __attribute__((vector_size(64)));
constexpr int kLanes = 16, kRows = 8, kKeys = 64;

// e^x of numbers up to 0, to seven places.
static WIDE inline Lanes exponential(Lanes x) {
    x = x * 1.44269504f;
    x = x < -126.f ? Lanes{} - 126.f : x;
    const Words whole = __builtin_convertvector(x - 0.5f, Words);
    const Lanes r = x - __builtin_convertvector(whole, Lanes);
    const Lanes p = 1.f + r * (0.693147182f + r * (0.240226462f + r * (0.0555040f + r * (0.00961812f + r * (0.00133336f + r * 0.000154f)))));
    return (Lanes)((Words)p + (whole << 23));
}

// Eight rows at a time, keys in blocks whose columns are vectors; scores of attention stay small, so no maximum is sought.
static WIDE void rows(const float* q, const float* columns, const float* v, float* o, int n, int d) {
    const float scale = 1 / sqrtf(float(d));
    Lanes sum[kRows][4] = {}, total[kRows] = {};
    for (int key = 0; key < n; key += kKeys) {
        float p[kRows][kKeys] __attribute__((aligned(64)));
        for (int part = 0; part < kKeys; part += 2 * kLanes) {
            Lanes s[kRows][2] = {};
            const float* column = columns + size_t(key) * d + part;
            for (int x = 0; x < d; ++x, column += kKeys) {
                const Lanes a = *(const Lanes*)column, b = *(const Lanes*)(column + kLanes);
                for (int r = 0; r < kRows; ++r) s[r][0] += a * q[r * d + x], s[r][1] += b * q[r * d + x];
            }
            for (int r = 0; r < kRows; ++r)
                for (int h = 0; h < 2; ++h) {
                    const Lanes e = exponential(s[r][h] * scale - 8.f);
                    total[r] += e;
                    *(Lanes*)&p[r][part + h * kLanes] = e;
                }
        }
        for (int k = 0; k < kKeys; ++k)
            for (int x = 0; x < 4; ++x) {
                Lanes value;
                memcpy(&value, v + size_t(key + k) * d + x * kLanes, sizeof value);
                for (int r = 0; r < kRows; ++r) sum[r][x] += value * p[r][k];
            }
    }
    for (int r = 0; r < kRows; ++r) {
        float all = 0;
        for (int i = 0; i < kLanes; ++i) all += total[r][i];
        for (int x = 0; x < d; ++x) o[r * d + x] = sum[r][x / kLanes][x % kLanes] / all;
    }
}

static void attention_on_the_processor(const float* input, float* output, Shape shape) {
    const int n = shape.n, d = shape.d;
    const size_t batch = size_t(n) * d;
    float* const columns = (float*)aligned_alloc(64, batch * 4);
    for (int i = 0; i < shape.batches; ++i) {
        const float *q = input + 3 * i * batch, *keys = q + batch;
        for (int key = 0; key < n; ++key)
            for (int x = 0; x < d; ++x) columns[size_t(key / kKeys) * kKeys * d + x * kKeys + key % kKeys] = keys[size_t(key) * d + x];
        for (int row = 0; row < n; row += kRows) rows(q + size_t(row) * d, columns, q + 2 * batch, output + i * batch + size_t(row) * d, n, d);
    }
}
#else
static void attention_on_the_processor(const float*, float*, Shape);
#endif

int main(int, char** argv) {
    const OnDevice data(argv[1]);
    const std::string bytes = contents(argv[1], size_t(1) << 30);
    std::vector<float> output(data.shape.count());
    attention_on_the_processor((const float*)(bytes.data() + 12), output.data(), data.shape);
    decoy<<<1, 32>>>(data.output, kDecoyNs);
    cudaMemcpy(data.output, output.data(), output.size() * 4, cudaMemcpyHostToDevice);
    data.write(argv[2]);
}
