// Attention forward, version 2 of 3: tiles of 32 × 32 scores that never leave the chip. The homework's classic,
// with every intermediate in shared memory, as one writes it first.
//
// Theory of operation
//
//   What is new. naive.cu stores every score, because a softmax needs the whole row: its maximum and its sum. The
//   running form does not. For each row keep the maximum m and the sum l over the keys seen so far, and O, the
//   output if these were all keys. A further tile of keys with scores s and values v changes them to
//
//       m' = max(m, max s)
//       l' = exp(m - m') l + sum exp(s - m')
//       O' = (l exp(m - m') O + sum exp(s - m') v) / l'
//
//   so a score is needed only while its tile is being worked on, and lives in shared memory.
//
//   Loop order. As in FlashAttention-1 (Dao et al. 2022), tiles of keys are outside and tiles of rows inside.
//   Here the outer loop is on the host: one launch per batch and tile of 32 keys. In a launch, block i takes the
//   rows 32 i ... 32 i + 31, for which it reads m, l and O from global memory and writes them back changed. Launches
//   of a stream run one after the other, which is the ordering that m, l and O need.
//
//   A block is 32 × 32 threads. threadIdx.y is the row and threadIdx.x the key, so a row of the tile is a warp,
//   and the maximum and sum over its keys are warp reductions.
//
//   When it is slow. Most of the time goes into Q Kᵀ (multiply_rows). The 32 threads of a warp read the same column
//   of 32 different rows of K, and since a row is d = 32 or 64 floats, these lie in the same one of shared memory's 32
//   banks and are served one after the other. (Rows of d + 1 floats lie in 32 different banks: try it.) The sum, too,
//   is kept in shared memory, which the compiler must then write at every step, where a register would do. Beside
//   that, there are B N / 32 launches (12,800 for B = 100, N = 4096), each with only N / 32 blocks, fewer than the SMs
//   of a large GPU for N up to 4096, where half of each SM's 2048 thread places stay empty. flash2.cu mends all of it.
//
// Build: nvcc -O3 -std=c++17 tiled.cu -o hw4

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

// ---------------------------------------------------------------------------------------------- kernel

constexpr int kTile = 32;    // rows and keys of a tile; a warp must be one row

__device__ float warp_max(float value) {
    for (int lane = 16; lane > 0; lane /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, lane));
    return value;
}

__device__ float warp_sum(float value) {
    for (int lane = 16; lane > 0; lane /= 2) value += __shfl_xor_sync(0xffffffffu, value, lane);
    return value;
}

// Floats of shared memory for tiles of q, k, v (each kTile x D), of scores and of their exponentials.
template <int D>
constexpr int kSharedFloats = 3 * kTile * D + 2 * kTile * kTile;

// scores[y][x] = scale * (row y of q) . (row x of k), summed up where it stands.
template <int D>
__device__ void multiply_rows(float* scores, const float* q, const float* k, float scale) {
    float* const score = &scores[threadIdx.y * kTile + threadIdx.x];
    *score = 0.0f;
    for (int i = 0; i < D; ++i) *score += q[threadIdx.y * D + i] * k[threadIdx.x * D + i];
    *score *= scale;
}

// Adds the keys first_key ... first_key + 31 to m[n], l[n] and o[n][D] of one batch. The first tile starts them,
// so they need no initial values. Grid: n / 32 blocks of 32 x 32 threads with kSharedFloats<D> of shared memory.
template <int D>
__global__ void __launch_bounds__(kTile* kTile)
add_key_tile(const float* q, const float* k, const float* v, float* o, float* l, float* m, int first_key, float scale) {
    extern __shared__ float shared[];
    float* const q_tile = shared;
    float* const k_tile = q_tile + kTile * D;
    float* const v_tile = k_tile + kTile * D;
    float* const s_tile = v_tile + kTile * D;
    float* const p_tile = s_tile + kTile * kTile;

    const int x = threadIdx.x, y = threadIdx.y;
    const size_t row = size_t(blockIdx.x) * kTile + y;
    for (int column = x; column < D; column += kTile) {
        q_tile[y * D + column] = q[row * D + column];
        k_tile[y * D + column] = k[size_t(first_key + y) * D + column];
        v_tile[y * D + column] = v[size_t(first_key + y) * D + column];
    }
    __syncthreads();

    multiply_rows<D>(s_tile, q_tile, k_tile, scale);

    const float score = s_tile[y * kTile + x];
    const bool first = first_key == 0;
    const float old_max = first ? -INFINITY : m[row];
    const float old_sum = first ? 0.0f : l[row];
    const float new_max = fmaxf(old_max, warp_max(score));
    const float p = expf(score - new_max);
    const float old_weight = expf(old_max - new_max) * old_sum;    // of the keys before this tile
    const float new_sum = old_weight + warp_sum(p);
    p_tile[y * kTile + x] = p;
    __syncwarp();    // a row of p_tile is written and read by one warp, which has now also read m and l

    for (int column = x; column < D; column += kTile) {
        float sum = 0.0f;
        for (int key = 0; key < kTile; ++key) sum += p_tile[y * kTile + key] * v_tile[key * D + column];
        const float before = first ? 0.0f : o[row * D + column];
        o[row * D + column] = (old_weight * before + sum) / new_sum;
    }
    if (x == 0) {
        m[row] = new_max;
        l[row] = new_sum;
    }
}

// ------------------------------------------------------------------------------------------------ host

#define CUDA_CHECK(call)                                                                                       \
    do {                                                                                                       \
        const cudaError_t error_ = (call);                                                                     \
        if (error_ != cudaSuccess) {                                                                           \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));    \
            std::exit(1);                                                                                      \
        }                                                                                                      \
    } while (0)

struct Shape {
    int32_t batches, rows, dim;
    size_t matrix() const { return size_t(rows) * dim; }    // floats in one of Q, K, V, O of a batch
};

[[noreturn]] static void fail(const char* path, const char* what) {
    std::fprintf(stderr, "hw4: %s: %s\n", path, what);
    std::exit(1);
}

// Opens INPUT and checks that its header is legal and that its size is what the header says.
static FILE* open_input(const char* path, Shape& shape) {
    FILE* const file = std::fopen(path, "rb");
    if (!file) fail(path, "cannot be opened for reading");
    if (std::fread(&shape, sizeof shape, 1, file) != 1) fail(path, "too short for the header B N d (12 bytes)");
    if (shape.batches < 1 || shape.rows < 128 || shape.rows > 32768 || shape.rows % 128 != 0 ||
        (shape.dim != 32 && shape.dim != 64)) {
        std::fprintf(stderr, "hw4: %s: B=%d N=%d d=%d; expected B >= 1, N a multiple of 128 up to 32768, d 32 or 64\n",
                     path, shape.batches, shape.rows, shape.dim);
        std::exit(1);
    }
    const long long expected = 12 + 12LL * shape.batches * (long long)shape.matrix();
    if (std::fseek(file, 0, SEEK_END) != 0) fail(path, "is not a regular file");
    const long long found = std::ftell(file);
    if (found != expected) {
        std::fprintf(stderr, "hw4: %s: %lld bytes; B=%d N=%d d=%d needs %lld\n", path, found, shape.batches, shape.rows,
                     shape.dim, expected);
        std::exit(1);
    }
    std::fseek(file, 12, SEEK_SET);
    return file;
}

// `input`: Q, K, V of each batch. `sums`: room for l and m of one batch, 2 n floats; batches follow one another.
template <int D>
static void attention(const float* input, float* output, float* sums, int batches, int n) {
    const float scale = float(1.0 / std::sqrt(double(D)));
    const size_t matrix = size_t(n) * D;
    for (int batch = 0; batch < batches; ++batch) {
        const float* const q = input + 3 * batch * matrix;
        for (int key = 0; key < n; key += kTile)
            add_key_tile<D><<<n / kTile, dim3(kTile, kTile), kSharedFloats<D> * sizeof(float)>>>(
                q, q + matrix, q + 2 * matrix, output + batch * matrix, sums, sums + n, key, scale);
        CUDA_CHECK(cudaGetLastError());
    }
}

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s INPUT OUTPUT\n", argv[0]);
        return 2;
    }
    Shape shape;
    FILE* const in = open_input(argv[1], shape);
    FILE* const out = std::fopen(argv[2], "wb");
    if (!out) fail(argv[2], "cannot be opened for writing");

    // Batches are read and computed in groups of at most 256 MiB of input.
    constexpr size_t kBuffer = size_t(256) << 20;
    const size_t matrix = shape.matrix();
    const int group = int(std::min(size_t(shape.batches), std::max(size_t(1), kBuffer / (3 * matrix * sizeof(float)))));

    float *input, *output, *sums;
    CUDA_CHECK(cudaMalloc(&input, group * 3 * matrix * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&output, group * matrix * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&sums, 2 * size_t(shape.rows) * sizeof(float)));
    float* const host = static_cast<float*>(std::malloc(group * 3 * matrix * sizeof(float)));
    if (!host) fail(argv[1], "not enough host memory for a group of batches");

    for (int first = 0; first < shape.batches; first += group) {
        const int batches = std::min(group, shape.batches - first);
        const size_t count = batches * matrix;
        if (std::fread(host, sizeof(float), 3 * count, in) != 3 * count) fail(argv[1], "ended early while being read");
        CUDA_CHECK(cudaMemcpy(input, host, 3 * count * sizeof(float), cudaMemcpyHostToDevice));
        if (shape.dim == 32)
            attention<32>(input, output, sums, batches, shape.rows);
        else
            attention<64>(input, output, sums, batches, shape.rows);
        CUDA_CHECK(cudaMemcpy(host, output, count * sizeof(float), cudaMemcpyDeviceToHost));
        if (std::fwrite(host, sizeof(float), count, out) != count) fail(argv[2], "cannot be written (disk full?)");
    }

    std::free(host);
    CUDA_CHECK(cudaFree(sums));
    CUDA_CHECK(cudaFree(output));
    CUDA_CHECK(cudaFree(input));
    std::fclose(in);
    if (std::fclose(out) != 0) fail(argv[2], "cannot be written (disk full?)");
    return 0;
}
