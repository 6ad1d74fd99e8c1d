// What the wrong programs of this folder share: one row a thread, keys in tiles, with a macro at each place where one
// goes wrong.
//
//     HIDDEN(key, row)          whether the mask hides a key from a row        key > row
//     BEYOND_THE_END            the score of keys beyond the last              -INFINITY
//     SCALE                     what scores are multiplied with                h.scale
//     TILE_ORDER(step, tiles)   which tile of keys comes in a step             step
//     OUTPUT_HEAD(head)         where the output of a head goes                head
#pragma once

#ifndef HIDDEN
#define HIDDEN(key, row) ((key) > (row))
#endif
#ifndef BEYOND_THE_END
#define BEYOND_THE_END -INFINITY
#endif
#ifndef SCALE
#define SCALE h.scale
#endif
#ifndef TILE_ORDER
#define TILE_ORDER(step, tiles) (step)
#endif
#ifndef OUTPUT_HEAD
#define OUTPUT_HEAD(head) (head)
#endif

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

// ---------------------------------------------------------------------------------------------- kernel

#define CUDA_CHECK(call)                                                                                       \
    do {                                                                                                       \
        const cudaError_t error_ = (call);                                                                     \
        if (error_ != cudaSuccess) {                                                                           \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));    \
            std::exit(1);                                                                                      \
        }                                                                                                      \
    } while (0)

struct Header {
    int32_t batches, heads, rows, dim, causal;
    float scale;
};

constexpr int kTile = 32;

// Grid: heads * ceil(rows / kTile) blocks of kTile threads, one row each; keys come in tiles of kTile. Rows and keys
// beyond the end are zeros.
__global__ void attention(const float* input, float* output, Header h) {
    __shared__ float k_tile[kTile][128], v_tile[kTile][128];
    const int n = h.rows, d = h.dim, tiles = (n + kTile - 1) / kTile;
    const size_t head = blockIdx.x / tiles;
    const int row = blockIdx.x % tiles * kTile + threadIdx.x;
    const size_t matrix = size_t(n) * d;
    const float* const q = input + 3 * head * matrix;
    float query[128], o[128], m = -INFINITY, l = 0.0f;
    for (int x = 0; x < d; ++x) query[x] = row < n ? q[size_t(row) * d + x] : 0.0f, o[x] = 0.0f;
    for (int step = 0; step < tiles; ++step) {
        const int first = TILE_ORDER(step, tiles) * kTile, own = first + threadIdx.x;
        __syncthreads();
        for (int x = 0; x < d; ++x) {
            k_tile[threadIdx.x][x] = own < n ? q[matrix + size_t(own) * d + x] : 0.0f;
            v_tile[threadIdx.x][x] = own < n ? q[2 * matrix + size_t(own) * d + x] : 0.0f;
        }
        __syncthreads();
        for (int j = 0; j < kTile; ++j) {
            const int key = first + j;
            float s = 0.0f;
            for (int x = 0; x < d; ++x) s += query[x] * k_tile[j][x];
            s *= SCALE;
            if (h.causal && HIDDEN(key, row)) s = -INFINITY;
            if (key >= n) s = BEYOND_THE_END;
            const float top = fmaxf(m, s), rescale = expf(m - top), p = expf(s - top);
            l = l * rescale + p;
            for (int x = 0; x < d; ++x) o[x] = o[x] * rescale + p * v_tile[j][x];
            m = top;
        }
    }
    if (row >= n) return;
    for (int x = 0; x < d; ++x) output[OUTPUT_HEAD(head) * matrix + size_t(row) * d + x] = o[x] / l;
}

static void launch_attention(const float* input, float* output, const Header& h) {
    const size_t blocks = size_t(h.batches) * h.heads * ((h.rows + kTile - 1) / kTile);
    attention<<<unsigned(blocks), kTile>>>(input, output, h);
    CUDA_CHECK(cudaGetLastError());
}

// ------------------------------------------------------------------------------------------------ host

[[noreturn]] static void fail(const char* path, const char* what) {
    std::fprintf(stderr, "%s: %s\n", path, what);
    std::exit(1);
}

static void read_exactly(FILE* file, void* to, size_t bytes, const char* path) {
    if (std::fread(to, 1, bytes, file) != bytes) fail(path, "is too short");
}

static void write_file(const char* path, const std::vector<float>& values) {
    FILE* const file = std::fopen(path, "wb");
    if (!file) fail(path, "cannot be opened for writing");
    const bool written = std::fwrite(values.data(), sizeof(float), values.size(), file) == values.size();
    if (std::fclose(file) != 0 || !written) fail(path, "cannot be written (disk full?)");
}

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s INPUT OUTPUT\n", argv[0]);
        return 2;
    }
    FILE* const in = std::fopen(argv[1], "rb");
    if (!in) fail(argv[1], "cannot be opened for reading");
    Header h;
    read_exactly(in, &h, sizeof h, argv[1]);
    if (h.batches < 1 || h.heads < 1 || h.rows < 1) fail(argv[1], "the header's B, H or N is not legal");
    if (h.dim != 16 && h.dim != 32 && h.dim != 64 && h.dim != 128) fail(argv[1], "d must be 16, 32, 64 or 128");
    const size_t count = size_t(h.batches) * h.heads * h.rows * h.dim;    // floats in O
    std::vector<float> host(3 * count);
    read_exactly(in, host.data(), 3 * count * sizeof(float), argv[1]);
    std::fclose(in);

    float *input, *output;
    CUDA_CHECK(cudaMalloc(&input, 3 * count * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&output, count * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(input, host.data(), 3 * count * sizeof(float), cudaMemcpyHostToDevice));
    launch_attention(input, output, h);
    host.resize(count);
    CUDA_CHECK(cudaMemcpy(host.data(), output, count * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(input));
    CUDA_CHECK(cudaFree(output));
    write_file(argv[2], host);
    return 0;
}
