// What the programs of this folder share: a right, plain attention kernel and the reading and writing of files.
//
// Theory of operation
//
//   One thread computes one row of O, walking over all keys once with a running maximum m and sum l. Each program
//   defines the macros of the places where it goes wrong before it includes this file:
//
//       SCALE(d)       what scores are multiplied with                         1 / sqrt(d)
//       KEYS(n)        how many keys are looked at                             n
//       BEFORE_MAIN    statements run at the start of main
//       BEFORE_WRITE   statements run when `result` holds O of all batches (`count` floats), before it is written
//       AFTER_WRITE    statements run when the output file is complete
//       LAUNCH         how the kernel is called for all batches
//
// Small inputs only: everything is in memory at once.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#ifndef SCALE
#define SCALE(d) (1.0f / sqrtf(float(d)))
#endif
#ifndef KEYS
#define KEYS(n) (n)
#endif
#ifndef BEFORE_MAIN
#define BEFORE_MAIN
#endif
#ifndef BEFORE_WRITE
#define BEFORE_WRITE
#endif
#ifndef AFTER_WRITE
#define AFTER_WRITE
#endif
#ifndef LAUNCH
#define LAUNCH(input, output, batches, n, d) attention<<<batches * (n / 64), 64>>>(input, output, n, d)
#endif

// Grid: n / 64 blocks of 64 threads for each batch of `input`.
__global__ void attention(const float* input, float* output, int n, int d) {
    const int batch = blockIdx.x / (n / 64), row = blockIdx.x % (n / 64) * 64 + threadIdx.x;
    const float* q = input + size_t(batch) * 3 * n * d + size_t(row) * d;
    const float* k = input + (size_t(batch) * 3 + 1) * n * d;
    const float* v = k + size_t(n) * d;
    float* o = output + (size_t(batch) * n + row) * d;

    float m = -INFINITY, l = 0.0f, sum[64];
    for (int x = 0; x < d; ++x) sum[x] = 0.0f;
    for (int key = 0; key < KEYS(n); ++key) {
        float s = 0.0f;
        for (int x = 0; x < d; ++x) s += q[x] * k[size_t(key) * d + x];
        s *= SCALE(d);
        const float top = fmaxf(m, s), rescale = expf(m - top), p = expf(s - top);
        for (int x = 0; x < d; ++x) sum[x] = sum[x] * rescale + p * v[size_t(key) * d + x];
        l = l * rescale + p;
        m = top;
    }
    for (int x = 0; x < d; ++x) o[x] = sum[x] / l;
}

inline void must(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    std::exit(1);
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    BEFORE_MAIN;
    FILE* in = std::fopen(argv[1], "rb");
    int32_t shape[3];
    if (!in || std::fread(shape, 4, 3, in) != 3) return 1;
    const int batches = shape[0], n = shape[1], d = shape[2];
    size_t count = size_t(batches) * n * d;
    std::vector<float> host(3 * count), result(count);
    if (std::fread(host.data(), 4, 3 * count, in) != 3 * count) return 1;
    std::fclose(in);

    float *input, *output;
    must(cudaMalloc(&input, 3 * count * 4), "cudaMalloc");
    must(cudaMalloc(&output, count * 4), "cudaMalloc");
    must(cudaMemcpy(input, host.data(), 3 * count * 4, cudaMemcpyHostToDevice), "copy of the input");
    LAUNCH(input, output, batches, n, d);
    must(cudaGetLastError(), "launch");
    must(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost), "copy of the output");

    BEFORE_WRITE;
    FILE* out = std::fopen(argv[2], "wb");
    if (!out || std::fwrite(result.data(), 4, count, out) != count || std::fclose(out) != 0) return 1;
    AFTER_WRITE;
    return 0;
}
