// Attention with heads and masks, version 2 of 2: tiles of 64 rows and 32 keys, flash attention's loop.
//
// Theory of operation
//
//   A block takes 64 query rows of one head and walks over the keys in steps of 32; m, l and O stay in registers.
//   A thread computes 4 × 4 scores a step, from K in shared memory, then 4 rows × d/8 columns of P V, from V in the
//   same place: K is no longer needed when V comes. At d = 128 that is 57.5 KiB, within every GPU's limit.
//
//   Ragged ends. Rows and keys beyond N are loaded as zeros, so no thread leaves early and every barrier is reached by
//   all. Their scores would be 0, and exp(0 - m) is not 0: they are set to -inf. Rows beyond N are not written.
//
//   The mask. A tile of keys after the block's last row is skipped: about half of all work. In tiles on the
//   diagonal, scores of later keys are set to -inf. The first step always holds key 0, which every row sees, so from
//   then on the running maximum is finite, and -inf - -inf, which is NaN, cannot happen.
//
//   Banks. Rows of shared tiles are 4 floats longer than d, so that the 8 threads that read 8 rows at the same x, 16
//   bytes each, touch all 32 banks once.

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

constexpr int kRows = 64;       // query rows of a block
constexpr int kKeys = 32;       // keys of a step
constexpr int kThreads = 128;   // 16 groups of 4 rows, times 8 groups of 4 keys
constexpr int kPad = 4;         // floats; rows of a tile begin 4 banks apart, and stay aligned to 16 bytes

template <int D>
constexpr size_t shared_bytes() {
    return sizeof(float) * ((kRows + kKeys) * (D + kPad) + kRows * (kKeys + kPad));
}

__device__ __forceinline__ float4 load4(const float* from) { return *reinterpret_cast<const float4*>(from); }

__device__ __forceinline__ float dot(float4 a, float4 b, float sum) {
    return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

// `Count` rows of D floats, times `scale`, into a tile; rows from `valid` on are zeros.
template <int D, int Count>
__device__ void load_tile(float* tile, const float* from, int valid, float scale) {
    for (int i = threadIdx.x; i < Count * (D / 4); i += kThreads) {
        const int row = i / (D / 4), x = i % (D / 4) * 4;
        float4 value = {0.0f, 0.0f, 0.0f, 0.0f};
        if (row < valid) value = load4(from + size_t(row) * D + x);
        value.x *= scale, value.y *= scale, value.z *= scale, value.w *= scale;
        *reinterpret_cast<float4*>(tile + row * (D + kPad) + x) = value;
    }
}

// Grid: heads * ceil(rows / kRows) blocks. `input` holds Q, K, V of head 0, of head 1, ...
template <int D>
__global__ void __launch_bounds__(kThreads) attention(const float* __restrict__ input, float* __restrict__ output,
                                                      Header h) {
    constexpr int Columns = D / 8;    // of O, a thread: group, group + 8, ... in pieces of 1
    extern __shared__ float4 shared[];
    float* const q_tile = reinterpret_cast<float*>(shared);
    float* const kv_tile = q_tile + kRows * (D + kPad);
    float* const p_tile = kv_tile + kKeys * (D + kPad);

    const int n = h.rows, tiles = (n + kRows - 1) / kRows;
    const size_t head = blockIdx.x / tiles;
    const int first_row = (tiles - 1 - blockIdx.x % tiles) * kRows;    // with a mask the last rows cost most: first
    const size_t matrix = size_t(n) * D;
    const float* const q = input + 3 * head * matrix;
    const float* const k = q + matrix;
    const float* const v = k + matrix;

    // A thread's rows are r0 + 16 i, its keys of a step k0 + 8 j: the 8 threads that share rows are neighbours.
    const int r0 = threadIdx.x / 8, k0 = threadIdx.x % 8;

    load_tile<D, kRows>(q_tile, q + size_t(first_row) * D, n - first_row, h.scale);
    float m[4], l[4], o[4][Columns];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        m[i] = -INFINITY, l[i] = 0.0f;
#pragma unroll
        for (int c = 0; c < Columns; ++c) o[i][c] = 0.0f;
    }

    const int end = h.causal ? min(n, first_row + kRows) : n;    // tiles that are masked for all rows are skipped
    for (int first_key = 0; first_key < end; first_key += kKeys) {
        __syncthreads();    // nobody still reads V of the step before
        load_tile<D, kKeys>(kv_tile, k + size_t(first_key) * D, n - first_key, 1.0f);
        __syncthreads();

        float s[4][4] = {};
#pragma unroll 2
        for (int x = 0; x < D; x += 4) {
            float4 a[4], b[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) a[i] = load4(q_tile + (r0 + 16 * i) * (D + kPad) + x);
#pragma unroll
            for (int j = 0; j < 4; ++j) b[j] = load4(kv_tile + (k0 + 8 * j) * (D + kPad) + x);
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) s[i][j] = dot(a[i], b[j], s[i][j]);
        }

        // Keys beyond the end, and keys that the mask hides, get -inf: a score of 0 would count.
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = first_row + r0 + 16 * i;
            float top = m[i];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int key = first_key + k0 + 8 * j;
                if (key >= n || (h.causal && key > row)) s[i][j] = -INFINITY;
                top = fmaxf(top, s[i][j]);
            }
#pragma unroll
            for (int lane = 1; lane < 8; lane *= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, lane));
            // Key 0 is in the first tile and every row sees it, so `top` is finite from then on: no -inf - -inf.
            const float rescale = expf(m[i] - top);
            m[i] = top;
            l[i] *= rescale;
#pragma unroll
            for (int c = 0; c < Columns; ++c) o[i][c] *= rescale;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float p = expf(s[i][j] - top);
                l[i] += p;
                p_tile[(r0 + 16 * i) * (kKeys + kPad) + k0 + 8 * j] = p;
            }
        }

        __syncthreads();    // nobody still reads K
        load_tile<D, kKeys>(kv_tile, v + size_t(first_key) * D, n - first_key, 1.0f);
        __syncthreads();
#pragma unroll 1
        for (int key = 0; key < kKeys; key += 4) {
            float4 p[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) p[i] = load4(p_tile + (r0 + 16 * i) * (kKeys + kPad) + key);
#pragma unroll
            for (int c = 0; c < Columns; ++c) {
                const float* const column = kv_tile + key * (D + kPad) + k0 + 8 * c;
                const float4 b = {column[0], column[D + kPad], column[2 * (D + kPad)], column[3 * (D + kPad)]};
#pragma unroll
                for (int i = 0; i < 4; ++i) o[i][c] = dot(p[i], b, o[i][c]);
            }
        }
    }

#pragma unroll
    for (int i = 0; i < 4; ++i) {
        float sum = l[i];
#pragma unroll
        for (int lane = 1; lane < 8; lane *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lane);
        const int row = first_row + r0 + 16 * i;
        if (row >= n) continue;    // after the shuffle: all lanes of the warp take part in it
#pragma unroll
        for (int c = 0; c < Columns; ++c) output[head * matrix + size_t(row) * D + k0 + 8 * c] = o[i][c] / sum;
    }
}

template <int D>
static void launch_attention(const float* input, float* output, const Header& h) {
    constexpr size_t bytes = shared_bytes<D>();
    CUDA_CHECK(cudaFuncSetAttribute(attention<D>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes)));
    const size_t blocks = size_t(h.batches) * h.heads * ((h.rows + kRows - 1) / kRows);
    attention<D><<<unsigned(blocks), kThreads, bytes>>>(input, output, h);
    CUDA_CHECK(cudaGetLastError());
}

static void launch_attention(const float* input, float* output, const Header& h) {
    switch (h.dim) {
        case 16: return launch_attention<16>(input, output, h);
        case 32: return launch_attention<32>(input, output, h);
        case 64: return launch_attention<64>(input, output, h);
        default: return launch_attention<128>(input, output, h);
    }
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
