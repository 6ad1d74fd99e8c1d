// Attention forward, version 3 of 3: the whole loop over keys inside one kernel.
//
// Theory of operation
//
//   What is new. tiled.cu sends m, l and O through global memory once per tile of keys. Nothing forces that:
//   a query row never needs another row's results, so one block can take a tile of rows, walk over all keys, and
//   keep m, l and O in registers from the first key to the last. Global memory then sees Q and O once, and K and
//   V once per tile of rows. This is the loop order of FlashAttention-2 (Dao 2023): rows outside, keys inside.
//
//   Work per warp. A warp owns 32 query rows and, step by step, 64 keys. Its lanes form a grid of 4 row groups
//   by 8 column groups, and every lane computes an 8 × 8 patch of scores in registers:
//
//       lane = 8 * row_group + column_group
//       rows       8 * row_group + 0..7
//       keys       4 * column_group + 0..3   and   32 + 4 * column_group + 0..3
//       O columns  4 * column_group + 0..3   and, for d = 64, 32 + 4 * column_group + 0..3
//
//   For each of the d steps of the dot products a lane loads 8 + 8 floats from shared memory (four 16-byte
//   loads) and performs 64 multiply-adds. That ratio is the point of the patch: with one score per thread it is
//   two loads for one multiply-add, and the kernel waits for shared memory instead of computing.
//
//   Softmax. Q is multiplied by log2(e) / sqrt(d) as it is loaded, so that exp(s / sqrt(d)) is one exp2. Row maxima
//   are exchanged among the 8 lanes that share a row. The row sums l are not: each lane sums its own keys, all
//   lanes rescale by the same factor, and the 8 partial sums meet once, after the last key.
//
//   P V. The probabilities must change hands, because the lane that computed a score is not the one that
//   needs it for its columns of O. They pass through a 4 KiB buffer of the warp's own, 32 keys at a time, so
//   __syncwarp is enough; the block synchronises only around loading K and V.
//
//   Shared memory, no padding, no bank conflicts:
//       Q  [d][rows]    transposed: the 8 values of a row group are adjacent
//       K  [d][64]      transposed: 8 column groups read 128 adjacent bytes
//       V  [64][d]      as it comes: 8 column groups read 128 adjacent bytes
//       P  [32][32]     per warp, key-major; the 16-byte chunks of key k are permuted by XOR with k / 4, so that
//                       lanes that write the same rows of different keys hit different banks
//   80 KiB for d = 64 with 4 warps. A GPU that has less for one block (Turing: 64 KiB) gets 2 warps, 56 KiB.
//
//   Host. The input can be far larger than either memory. Batches are processed in groups that fit the device;
//   files pass through two small pinned buffers, so that reading one overlaps with copying the other. All
//   official testcases fit in one group, hence one launch.
//
// Cost: 4 B N² d floating-point operations, B N² exponentials. Build: nvcc -O3 -std=c++17 flash2.cu -o hw4

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

// ---------------------------------------------------------------------------------------------- kernel

constexpr int kKeys = 64;        // keys per step
constexpr int kWarpRows = 32;    // query rows per warp
constexpr int kPatch = 8;        // a lane's patch of scores is kPatch x kPatch
constexpr int kHalf = 32;        // keys whose probabilities are exchanged at a time

template <int D, int Warps>
constexpr size_t shared_bytes() {
    return sizeof(float) * (size_t(D) * Warps * kWarpRows + 2 * size_t(kKeys) * D + size_t(Warps) * kHalf * kWarpRows);
}

// Copies `Count` rows of D floats into the transposed array `to[D][Count]`, multiplying by `scale`. Neighbouring
// lanes take neighbouring rows: their stores fall in different banks, and the cache holds the rest of each row.
template <int D, int Count, int Threads>
__device__ void load_transposed(float* to, const float* from, float scale) {
    for (int i = threadIdx.x; i < Count * D / 4; i += Threads) {
        const int row = i % Count, column = i / Count * 4;
        const float4 x = *reinterpret_cast<const float4*>(from + row * D + column);
        to[(column + 0) * Count + row] = x.x * scale;
        to[(column + 1) * Count + row] = x.y * scale;
        to[(column + 2) * Count + row] = x.z * scale;
        to[(column + 3) * Count + row] = x.w * scale;
    }
}

__device__ __forceinline__ void load4(float* registers, const float* from) {
    const float4 x = *reinterpret_cast<const float4*>(from);
    registers[0] = x.x, registers[1] = x.y, registers[2] = x.z, registers[3] = x.w;
}

__device__ __forceinline__ void store4(float* to, float a, float b, float c, float d) {
    *reinterpret_cast<float4*>(to) = make_float4(a, b, c, d);
}

// Where the 4 rows `4 * chunk ...` of `key` (0..31) lie in the warp's P buffer.
__device__ __forceinline__ int p_index(int key, int chunk) {
    return key * kWarpRows + 4 * (chunk ^ (key / 4));
}

// One block: Warps * 32 query rows of one batch. Grid: (batches * n / rows per block) blocks, 1-D.
// `input` holds Q, K, V of batch 0, then of batch 1, ...; `output` holds O of batch 0, 1, ...
template <int D, int Warps>
__global__ void __launch_bounds__(Warps * 32)
attention(const float* __restrict__ input, float* __restrict__ output, int n, float scale) {
    constexpr int Rows = Warps * kWarpRows;
    constexpr int Threads = Warps * 32;
    constexpr int Columns = D / 8;    // O columns of a lane: 4 or 8

    extern __shared__ float4 shared[];
    float* const q_tile = reinterpret_cast<float*>(shared);
    float* const k_tile = q_tile + D * Rows;
    float* const v_tile = k_tile + D * kKeys;
    float* const p_tile = v_tile + kKeys * D + threadIdx.x / 32 * (kHalf * kWarpRows);

    const int tiles = n / Rows;
    const size_t batch = blockIdx.x / tiles;
    const size_t first_row = size_t(blockIdx.x % tiles) * Rows;
    const size_t matrix = size_t(n) * D;
    const float* const q = input + 3 * batch * matrix;
    const float* const k = q + matrix;
    const float* const v = k + matrix;

    const int row_group = threadIdx.x % 32 / 8, column_group = threadIdx.x % 8;
    const int warp_row = threadIdx.x / 32 * kWarpRows;
    const int my_row = warp_row + row_group * kPatch;    // first of the lane's 8 rows within the block

    load_transposed<D, Rows, Threads>(q_tile, q + first_row * D, scale);

    float m[kPatch], l[kPatch], o[kPatch][Columns];
#pragma unroll
    for (int r = 0; r < kPatch; ++r) {
        m[r] = -INFINITY;
        l[r] = 0.0f;
#pragma unroll
        for (int c = 0; c < Columns; ++c) o[r][c] = 0.0f;
    }

    for (int first_key = 0; first_key < n; first_key += kKeys) {
        __syncthreads();    // nobody still reads the previous K and V
        load_transposed<D, kKeys, Threads>(k_tile, k + size_t(first_key) * D, 1.0f);
        const float4* const v_from = reinterpret_cast<const float4*>(v + size_t(first_key) * D);
        for (int i = threadIdx.x; i < kKeys * D / 4; i += Threads) reinterpret_cast<float4*>(v_tile)[i] = v_from[i];
        __syncthreads();

        // S = Q Kᵀ, an 8 x 8 patch per lane. Scores are in units of log2.
        float s[kPatch][kPatch] = {};
#pragma unroll 8
        for (int x = 0; x < D; ++x) {
            float a[kPatch], b[kPatch];
            load4(a, q_tile + x * Rows + my_row);
            load4(a + 4, q_tile + x * Rows + my_row + 4);
            load4(b, k_tile + x * kKeys + 4 * column_group);
            load4(b + 4, k_tile + x * kKeys + kHalf + 4 * column_group);
#pragma unroll
            for (int r = 0; r < kPatch; ++r)
#pragma unroll
                for (int c = 0; c < kPatch; ++c) s[r][c] += a[r] * b[c];
        }

        // m' = max(m, max s),  P = exp(s - m'),  l' = exp(m - m') l + sum P,  O' = exp(m - m') O (+ P V below)
#pragma unroll
        for (int r = 0; r < kPatch; ++r) {
            float top = m[r];
#pragma unroll
            for (int c = 0; c < kPatch; ++c) top = fmaxf(top, s[r][c]);
#pragma unroll
            for (int lane = 1; lane < 8; lane *= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, lane));

            const float rescale = exp2f(m[r] - top);    // 0 at the first tile, where m is -infinity
            m[r] = top;
            l[r] *= rescale;
#pragma unroll
            for (int c = 0; c < Columns; ++c) o[r][c] *= rescale;
#pragma unroll
            for (int c = 0; c < kPatch; ++c) {
                s[r][c] = exp2f(s[r][c] - top);
                l[r] += s[r][c];
            }
        }

        // O += P V, 32 keys at a time through the warp's P buffer.
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            __syncwarp();    // the warp has read what the buffer held
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const int key = 4 * column_group + c, from = 4 * half + c;
                store4(p_tile + p_index(key, 2 * row_group), s[0][from], s[1][from], s[2][from], s[3][from]);
                store4(p_tile + p_index(key, 2 * row_group + 1), s[4][from], s[5][from], s[6][from], s[7][from]);
            }
            __syncwarp();
#pragma unroll 8
            for (int key = 0; key < kHalf; ++key) {
                float p[kPatch], b[Columns];
                load4(p, p_tile + p_index(key, 2 * row_group));
                load4(p + 4, p_tile + p_index(key, 2 * row_group + 1));
#pragma unroll
                for (int c = 0; c < Columns; c += 4)
                    load4(b + c, v_tile + (half * kHalf + key) * D + 8 * c + 4 * column_group);
#pragma unroll
                for (int r = 0; r < kPatch; ++r)
#pragma unroll
                    for (int c = 0; c < Columns; ++c) o[r][c] += p[r] * b[c];
            }
        }
    }

    float* const out = output + batch * matrix + (first_row + my_row) * D + 4 * column_group;
#pragma unroll
    for (int r = 0; r < kPatch; ++r) {
        float sum = l[r];
#pragma unroll
        for (int lane = 1; lane < 8; lane *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lane);
        const float inverse = 1.0f / sum;
#pragma unroll
        for (int c = 0; c < Columns; c += 4)
            store4(out + r * D + 8 * c, o[r][c] * inverse, o[r][c + 1] * inverse, o[r][c + 2] * inverse,
                   o[r][c + 3] * inverse);
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
    std::setvbuf(file, nullptr, _IONBF, 0);    // reads are large already
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

// Moves bytes between a file and device memory through two pinned buffers, one in the file's hands while the
// other is in the copy engine's.
class Pipe {
public:
    Pipe() {
        for (int i = 0; i < 2; ++i) {
            CUDA_CHECK(cudaMallocHost(&buffer_[i], kBytes));
            CUDA_CHECK(cudaEventCreateWithFlags(&free_[i], cudaEventDisableTiming));
        }
    }
    ~Pipe() {
        for (int i = 0; i < 2; ++i) {
            cudaEventDestroy(free_[i]);
            cudaFreeHost(buffer_[i]);
        }
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    void file_to_device(FILE* file, const char* path, void* device, size_t bytes) {
        int turn = 0;
        for (size_t done = 0; done < bytes; done += kBytes, turn ^= 1) {
            const size_t part = std::min(kBytes, bytes - done);
            CUDA_CHECK(cudaEventSynchronize(free_[turn]));
            if (std::fread(buffer_[turn], 1, part, file) != part) fail(path, "ended early while being read");
            CUDA_CHECK(cudaMemcpyAsync(static_cast<char*>(device) + done, buffer_[turn], part, cudaMemcpyHostToDevice));
            CUDA_CHECK(cudaEventRecord(free_[turn]));
        }
    }

    void device_to_file(const void* device, size_t bytes, FILE* file, const char* path) {
        size_t waiting = 0;    // bytes of the previous part, copied or being copied, not yet written
        int turn = 0;
        for (size_t done = 0; done < bytes || waiting > 0; done += kBytes, turn ^= 1) {
            const size_t part = done < bytes ? std::min(kBytes, bytes - done) : 0;
            if (part > 0) {
                CUDA_CHECK(cudaMemcpyAsync(buffer_[turn], static_cast<const char*>(device) + done, part,
                                           cudaMemcpyDeviceToHost));
                CUDA_CHECK(cudaEventRecord(free_[turn]));
            }
            if (waiting > 0) {
                CUDA_CHECK(cudaEventSynchronize(free_[turn ^ 1]));
                if (std::fwrite(buffer_[turn ^ 1], 1, waiting, file) != waiting)
                    fail(path, "cannot be written (disk full?)");
            }
            waiting = part;
        }
    }

private:
    static constexpr size_t kBytes = size_t(16) << 20;
    void* buffer_[2];
    cudaEvent_t free_[2];
};

template <int D, int Warps>
static void launch(const float* input, float* output, int batches, int n) {
    const float scale = float(1.4426950408889634 / std::sqrt(double(D)));
    constexpr size_t bytes = shared_bytes<D, Warps>();
    CUDA_CHECK(cudaFuncSetAttribute(attention<D, Warps>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes)));
    const unsigned blocks = unsigned(batches) * unsigned(n / (Warps * kWarpRows));    // at most 14000 * 512
    attention<D, Warps><<<blocks, Warps * 32, bytes>>>(input, output, n, scale);
    CUDA_CHECK(cudaGetLastError());
}

template <int D>
static void launch(const float* input, float* output, int batches, int n) {
    int device = 0, most_shared = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&most_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    if (size_t(most_shared) >= shared_bytes<D, 4>())
        launch<D, 4>(input, output, batches, n);
    else
        launch<D, 2>(input, output, batches, n);
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
    std::setvbuf(out, nullptr, _IONBF, 0);

    // As many batches at a time as fit in 2 GiB, or in most of what the device has left.
    size_t free_bytes = 0, total_bytes = 0;
    CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    const size_t matrix_bytes = shape.matrix() * sizeof(float);
    const size_t room = std::min(size_t(2) << 30, free_bytes / 10 * 9);
    const int group = int(std::min(size_t(shape.batches), std::max(size_t(1), room / (4 * matrix_bytes))));

    float *input = nullptr, *output = nullptr;
    CUDA_CHECK(cudaMalloc(&input, 3 * matrix_bytes * group));
    CUDA_CHECK(cudaMalloc(&output, matrix_bytes * group));
    {
        Pipe pipe;
        for (int first = 0; first < shape.batches; first += group) {
            const int batches = std::min(group, shape.batches - first);
            pipe.file_to_device(in, argv[1], input, 3 * matrix_bytes * batches);
            if (shape.dim == 32)
                launch<32>(input, output, batches, shape.rows);
            else
                launch<64>(input, output, batches, shape.rows);
            pipe.device_to_file(output, matrix_bytes * batches, out, argv[2]);
        }
    }
    CUDA_CHECK(cudaFree(output));
    CUDA_CHECK(cudaFree(input));
    std::fclose(in);
    if (std::fclose(out) != 0) fail(argv[2], "cannot be written (disk full?)");
    return 0;
}
