// Attention one step at a time, version 2 of 2: both products in tiles, as in the first warm-up.
//
// Theory of operation
//
//   S = Q Kᵀ and O = P V are matrix products, and one kernel does both: C = scale * A B (or A Bᵀ), 32 × 32 elements
//   of C a block, tiles of A and B in shared memory. With B transposed on the way there, Kᵀ is never stored:
//   a tile of K is read along its rows, 32 neighbouring floats for a warp, and stored down a column of the shared
//   tile, which is padded to 33 so that the column does not fall into one bank.
//
//   S is still written once and read three times; that traffic is what flash attention does away with.

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

constexpr int kTile = 32;

// c = scale * a b, or scale * a bᵀ. a is m × k; b k × n (Transposed: n × k); c m × n; all sizes multiples of kTile.
// Grid: n / kTile × m / kTile blocks of kTile × kTile threads.
template <bool Transposed>
__global__ void __launch_bounds__(kTile * kTile) product(const float* a, const float* b, float* c, int n, int k,
                                                         float scale) {
    __shared__ float a_tile[kTile][kTile], b_tile[kTile][kTile + 1];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * kTile + y, first_column = blockIdx.x * kTile;
    float sum = 0.0f;
    for (int first = 0; first < k; first += kTile) {
        a_tile[y][x] = a[size_t(row) * k + first + x];
        if (Transposed)
            b_tile[x][y] = b[size_t(first_column + y) * k + first + x];
        else
            b_tile[y][x] = b[size_t(first + y) * n + first_column + x];
        __syncthreads();
        for (int i = 0; i < kTile; ++i) sum += a_tile[y][i] * b_tile[i][x];
        __syncthreads();
    }
    c[size_t(row) * n + first_column + x] = sum * scale;
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

static void launch_attention(const float* q, const float* k, const float* v, float*, float* scores, float* o, int n,
                             int d) {
    const dim3 threads(kTile, kTile);
    product<true><<<dim3(n / kTile, n / kTile), threads>>>(q, k, scores, n, d, 1.0f / sqrtf(float(d)));
    softmax_rows<<<n, 32>>>(scores, n);
    product<false><<<dim3(d / kTile, n / kTile), threads>>>(scores, v, o, d, n, 1.0f);
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
