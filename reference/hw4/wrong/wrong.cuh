// What the wrong solutions of this folder share: a right solution, with a hook at every place where one of them errs.
//
// Theory of operation
//
//   A block of kRows threads computes kRows rows of O, a thread a row. It walks over the keys in tiles of kTile, which
//   its threads load into shared memory together, with the online softmax: a running maximum m and sum l, and the sum
//   so far in `sum`, all rescaled when m grows. Grid: (n / kRows, batches).
//
//   With ONE_KEY_AT_A_TIME a tile is one key, which every thread reads from global memory by itself: the kernel that
//   the handout recommends as a first step. tools/wrong_kernels.py tries each mistake in both styles, but for those
//   that say `// tiles only` in their third line, since they are mistakes with a tile in shared memory.
//
//   A wrong solution defines the hooks where it goes wrong and includes this file. Its second line says what must
//   become of it, for tools/wrong_kernels.py:
//
//       // expect: VERDICT on WHERE: WORDS [| OTHER WORDS …]
//
//   WHERE is `all`, or testcases by shape (`d=64`) or name (`t27`), comma-separated; elsewhere it passes. WORDS are in
//   the reason that the student reads.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#ifdef ONE_KEY_AT_A_TIME
constexpr int kRows = 64, kTile = 1;
#else
constexpr int kRows = 64, kTile = 32;
#endif

#ifndef SCALE    // what scores are multiplied with
#define SCALE (1.0f / sqrtf(float(d)))
#endif
#ifndef TILES    // tiles of keys: from FIRST_TILE to TILES
#define TILES (n / kTile)
#endif
#ifndef FIRST_TILE
#define FIRST_TILE 0
#endif
#ifndef USED    // whether a key counts
#define USED(key) true
#endif
#ifndef COLUMNS    // how many columns q·k is summed over
#define COLUMNS d
#endif
#ifndef QUERY    // the row of Q for row `row` of O
#define QUERY row
#endif
#ifndef TARGET    // where O's value in row `row`, column x goes
#define TARGET (size_t(row) * d + x)
#endif
#ifndef K_AT    // where a value of the tile of K is in shared memory
#define K_AT(key, x) ((key) * d + (x))
#endif
#ifndef V_FROM    // the first key whose V is loaded into the tile
#define V_FROM first
#endif
#ifndef WEIGHT    // the weight of score s under the maximum m
#define WEIGHT(s, m) expf((s) - (m))
#endif
#ifndef M_START
#define M_START (-INFINITY)
#endif
#ifndef RESCALED_SUM    // the sums so far, when the maximum grows
#define RESCALED_SUM(value) ((value) * rescale)
#endif
#ifndef RESCALED_L
#define RESCALED_L(value) ((value) * rescale)
#endif
#ifndef TOTAL    // what the sum is divided by
#define TOTAL l
#endif
#ifndef SUM_TYPE
#define SUM_TYPE float
#endif
#ifndef LOADED    // between loading a tile and using it
#define LOADED __syncthreads()
#endif
#ifndef INPUT_OF    // where a batch begins in the input, in values
#define INPUT_OF(batch) (size_t(batch) * 3 * n * d)
#endif
#ifndef ORDER    // the tensors in the input's order
#define ORDER q, k, v
#endif
#ifndef GRID
#define GRID dim3(n / kRows, batches)
#endif
#ifndef BEFORE_WRITE    // when `result` holds all of O
#define BEFORE_WRITE
#endif
#ifndef WRITE
#define WRITE std::fwrite(result.data(), 4, result.size(), out)
#endif

__device__ void split(const float* batch, size_t size, const float*& first, const float*& second, const float*& third) {
    first = batch;
    second = batch + size;
    third = batch + 2 * size;
}

#ifdef ONE_KEY_AT_A_TIME

__global__ void attention(const float* input, float* output, int n, int d) {
    const int batch = blockIdx.y, row = blockIdx.x * kRows + threadIdx.x;
    const float *q, *k, *v;
    split(input + INPUT_OF(batch), size_t(n) * d, ORDER);
    float* const o = output + size_t(batch) * n * d;

    float m = M_START, l = 0.0f;
    SUM_TYPE sum[64];
    for (int x = 0; x < d; ++x) sum[x] = 0.0f;
    for (int first = FIRST_TILE; first < TILES; ++first) {
        if (!(USED(first))) continue;
        float s = 0.0f;
        for (int x = 0; x < COLUMNS; ++x) s += q[size_t(QUERY) * d + x] * k[size_t(first) * d + x];
        s *= SCALE;
        const float top = fmaxf(m, s), p = WEIGHT(s, top);
        [[maybe_unused]] const float rescale = expf(m - top);
        l = RESCALED_L(l) + p;
        for (int x = 0; x < d; ++x)
            sum[x] = SUM_TYPE(RESCALED_SUM(float(sum[x])) + p * v[size_t(V_FROM) * d + x]);
        m = top;
    }
    for (int x = 0; x < d; ++x) o[TARGET] = float(sum[x]) / TOTAL;
}

#else

__global__ void attention(const float* input, float* output, int n, int d) {
    extern __shared__ float tiles[];
    float *const k_tile = tiles, *const v_tile = tiles + kTile * d;
    const int batch = blockIdx.y, row = blockIdx.x * kRows + threadIdx.x;
    const float *q, *k, *v;
    split(input + INPUT_OF(batch), size_t(n) * d, ORDER);
    float* const o = output + size_t(batch) * n * d;

    float query[64];
    for (int x = 0; x < d; ++x) query[x] = q[size_t(QUERY) * d + x];
    float m = M_START, l = 0.0f;
    SUM_TYPE sum[64];
    for (int x = 0; x < d; ++x) sum[x] = 0.0f;

    for (int tile = FIRST_TILE; tile < TILES; ++tile) {
        const int first = tile * kTile;
        for (int i = threadIdx.x; i < kTile * d; i += kRows) {
            k_tile[i] = k[size_t(first) * d + i];
            v_tile[i] = v[size_t(V_FROM) * d + i];
        }
        LOADED;
        float scores[kTile], top = m;
        for (int key = 0; key < kTile; ++key) {
            float s = 0.0f;
            for (int x = 0; x < COLUMNS; ++x) s += query[x] * k_tile[K_AT(key, x)];
            scores[key] = s * SCALE;
            if (USED(first + key)) top = fmaxf(top, scores[key]);
        }
        [[maybe_unused]] const float rescale = expf(m - top);
        for (int x = 0; x < d; ++x) sum[x] = SUM_TYPE(RESCALED_SUM(float(sum[x])));
        l = RESCALED_L(l);
        for (int key = 0; key < kTile; ++key) {
            if (!(USED(first + key))) continue;
            const float p = WEIGHT(scores[key], top);
            l += p;
            for (int x = 0; x < d; ++x) sum[x] = SUM_TYPE(float(sum[x]) + p * v_tile[key * d + x]);
        }
        m = top;
        __syncthreads();
    }
    for (int x = 0; x < d; ++x) o[TARGET] = float(sum[x]) / TOTAL;
}

#endif

inline void must(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    std::exit(1);
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    FILE* const in = std::fopen(argv[1], "rb");
    int32_t shape[3];
    if (!in || std::fread(shape, 4, 3, in) != 3) return 1;
    const int batches = shape[0], n = shape[1], d = shape[2];
    const size_t count = size_t(batches) * n * d;
    std::vector<float> host(3 * count), result(count);
    if (std::fread(host.data(), 4, host.size(), in) != host.size()) return 1;
    std::fclose(in);

    float *input, *output;
    must(cudaMalloc(&input, 3 * count * 4), "cudaMalloc");
    must(cudaMalloc(&output, count * 4), "cudaMalloc");
    must(cudaMemset(output, 0, count * 4), "cudaMemset");
    must(cudaMemcpy(input, host.data(), 3 * count * 4, cudaMemcpyHostToDevice), "copy of the input");
    attention<<<GRID, kRows, 2 * kTile * d * 4>>>(input, output, n, d);
    must(cudaGetLastError(), "launch");
    must(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost), "copy of the output");
    cudaFree(input);
    cudaFree(output);

    BEFORE_WRITE;
    FILE* const out = std::fopen(argv[2], "wb");
    if (!out) return 1;
    WRITE;
    return std::fclose(out) == 0 ? 0 : 1;
}
