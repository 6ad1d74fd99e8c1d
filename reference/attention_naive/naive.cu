// Attention one step at a time, version 1 of 2: the formula, a kernel for each step, scores in global memory.
//
// Theory of operation
//
//       Kᵀ        transposed, so that neighbouring keys are neighbours in memory
//       S = Q Kᵀ / sqrt(d)      a matrix product, one thread for each score
//       P = softmax of S's rows, in place, one warp for each row
//       O = P V                 a matrix product, one thread for each element
//
//   Why transpose: thread `key` of a warp reads K[key][x], and neighbouring threads would read d floats apart, 32
//   lines for a warp's load. From Kᵀ[x][key] they read one line.
//
//   Batches come one after the other and share one score matrix.

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

// kt = kᵀ: d × n from n × d. Grid: at least n * d threads.
__global__ void transpose(const float* k, float* kt, int n, int d) {
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < n * d) kt[size_t(index % d) * n + index / d] = k[index];
}

// scores = scale * q kt: n × n from n × d and d × n. Grid: n / 32 × n / 8 blocks of 32 × 8 threads.
__global__ void scores_of(const float* q, const float* kt, float* scores, int n, int d, float scale) {
    const int key = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.0f;
    for (int x = 0; x < d; ++x) sum += q[row * d + x] * kt[size_t(x) * n + key];
    scores[size_t(row) * n + key] = sum * scale;
}

// Softmax of every row in place. Grid: n blocks of 32 threads: one warp for each row.
__global__ void softmax_rows(float* scores, int n) {
    float* const row = scores + size_t(blockIdx.x) * n;
    float most = -INFINITY, sum = 0.0f;
    for (int key = threadIdx.x; key < n; key += 32) most = fmaxf(most, row[key]);
    for (int lane = 1; lane < 32; lane *= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, lane));
    for (int key = threadIdx.x; key < n; key += 32) sum += row[key] = expf(row[key] - most);
    for (int lane = 1; lane < 32; lane *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    for (int key = threadIdx.x; key < n; key += 32) row[key] /= sum;
}

// o = p v: n × d from n × n and n × d. Grid: d / 32 × n / 8 blocks of 32 × 8 threads.
__global__ void output_of(const float* p, const float* v, float* o, int n, int d) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.0f;
    for (int key = 0; key < n; ++key) sum += p[size_t(row) * n + key] * v[size_t(key) * d + column];
    o[size_t(row) * d + column] = sum;
}

static void launch_attention(const float* q, const float* k, const float* v, float* kt, float* scores, float* o, int n,
                             int d) {
    const dim3 threads(32, 8);
    transpose<<<n * d / 256, 256>>>(k, kt, n, d);
    scores_of<<<dim3(n / 32, n / 8), threads>>>(q, kt, scores, n, d, 1.0f / sqrtf(float(d)));
    softmax_rows<<<n, 32>>>(scores, n);
    output_of<<<dim3(d / 32, n / 8), threads>>>(scores, v, o, n, d);
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
    int32_t batches, n, d;
    read_exactly(in, &batches, sizeof batches, argv[1]);
    read_exactly(in, &n, sizeof n, argv[1]);
    read_exactly(in, &d, sizeof d, argv[1]);
    if (batches < 1 || n < 128 || n > 32768 || (d != 32 && d != 64)) fail(argv[1], "B, N or d is not legal");
    const size_t matrix = size_t(n) * d;
    std::vector<float> input(3 * matrix * batches), output(matrix * batches);
    read_exactly(in, input.data(), input.size() * sizeof(float), argv[1]);
    std::fclose(in);

    // Scores of one batch at a time: N² floats, used again for the next batch.
    float *qkv, *kt, *scores, *o;
    CUDA_CHECK(cudaMalloc(&qkv, 3 * matrix * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&kt, matrix * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&scores, size_t(n) * n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&o, matrix * sizeof(float)));
    for (int batch = 0; batch < batches; ++batch) {
        const float* const from = input.data() + 3 * matrix * batch;
        CUDA_CHECK(cudaMemcpy(qkv, from, 3 * matrix * sizeof(float), cudaMemcpyHostToDevice));
        launch_attention(qkv, qkv + matrix, qkv + 2 * matrix, kt, scores, o, n, d);
        CUDA_CHECK(cudaMemcpy(output.data() + matrix * batch, o, matrix * sizeof(float), cudaMemcpyDeviceToHost));
    }
    CUDA_CHECK(cudaFree(qkv));
    CUDA_CHECK(cudaFree(kt));
    CUDA_CHECK(cudaFree(scores));
    CUDA_CHECK(cudaFree(o));
    write_file(argv[2], output);
    return 0;
}
