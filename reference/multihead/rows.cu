// Attention with heads and masks, version 1 of 2: one thread for each row.
//
// Theory of operation
//
//   A thread walks over the keys that its row sees, all of them or those up to its own number, and keeps the online
//   softmax's m, l and O to itself (O in local memory, since d is not known to the compiler). Nothing is tiled, so
//   there is no ragged end to get wrong, and no score that has to be masked: a masked key is simply not visited. Rows
//   of all heads are numbered through.

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

constexpr int kThreads = 64;

// Grid: one block for each kThreads rows of all heads together. `input` holds Q, K, V of head 0, of head 1, ...
__global__ void attention(const float* input, float* output, Header h) {
    const size_t row = size_t(blockIdx.x) * kThreads + threadIdx.x;    // counted through all heads
    if (row >= size_t(h.batches) * h.heads * h.rows) return;
    const size_t head = row / h.rows;
    const int i = int(row % h.rows), d = h.dim;
    const float* const q = input + (3 * head * h.rows + i) * d;
    const float* const k = input + (3 * head + 1) * h.rows * d;
    const float* const v = k + size_t(h.rows) * d;

    float m = -INFINITY, l = 0.0f, o[128];
    for (int x = 0; x < d; ++x) o[x] = 0.0f;
    const int keys = h.causal ? i + 1 : h.rows;
    for (int key = 0; key < keys; ++key) {
        float s = 0.0f;
        for (int x = 0; x < d; ++x) s += q[x] * k[size_t(key) * d + x];
        s *= h.scale;
        const float top = fmaxf(m, s), rescale = expf(m - top), p = expf(s - top);
        l = l * rescale + p;
        for (int x = 0; x < d; ++x) o[x] = o[x] * rescale + p * v[size_t(key) * d + x];
        m = top;
    }
    for (int x = 0; x < d; ++x) output[row * d + x] = o[x] / l;
}

static void launch_attention(const float* input, float* output, const Header& h) {
    const size_t rows = size_t(h.batches) * h.heads * h.rows;
    attention<<<unsigned((rows + kThreads - 1) / kThreads), kThreads>>>(input, output, h);
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
