// What the attention programs here share: CHECK, and a main that calls solve on device pointers. timer.cu has a main of its
// own (TIMED).

#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                             \
    do {                                                                        \
        const cudaError_t error = (call);                                       \
        if (error != cudaSuccess) {                                             \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error)); \
            std::exit(1);                                                       \
        }                                                                       \
    } while (0)

extern "C" void solve(const float* input, float* output, int batches, int n, int d);

#ifndef TIMED
int main(int argc, char** argv) {
    if (argc != 3) return 1;
    FILE* const in = std::fopen(argv[1], "rb");
    int32_t shape[3];
    if (!in || std::fread(shape, sizeof shape, 1, in) != 1) return 1;
    const size_t count = size_t(shape[0]) * shape[1] * shape[2];
    std::vector<float> values(3 * count), result(count);
    if (std::fread(values.data(), sizeof(float), 3 * count, in) != 3 * count) return 1;
    float *input, *output;
    CHECK(cudaMalloc(&input, 3 * count * sizeof(float)));
    CHECK(cudaMalloc(&output, count * sizeof(float)));
    CHECK(cudaMemcpy(input, values.data(), 3 * count * sizeof(float), cudaMemcpyHostToDevice));
    solve(input, output, shape[0], shape[1], shape[2]);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(result.data(), output, count * sizeof(float), cudaMemcpyDeviceToHost));
    FILE* const out = std::fopen(argv[2], "wb");
    if (!out || std::fwrite(result.data(), sizeof(float), count, out) != count || std::fclose(out)) return 1;
    return 0;
}
#endif
