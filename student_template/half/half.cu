// Attention in half precision.
//
//     ./half INPUT OUTPUT
//
// This file reads INPUT, sends it to the GPU, calls your kernel, and writes OUTPUT. The kernel is yours: look for TODO.
// The code below defines types, layouts and masks. As it stands, the program compiles, runs, and writes zeros,
// which fails nearly every test.
//
// Theory of operation
//
//     TODO: replace these lines with yours, in a few sentences. What does one thread compute, and what one block? Which
//     data is in registers, in shared memory, in global memory? Which threads wait for which, and why?

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// A CUDA call reports an error only by its result, and a kernel by the result of a later call. Check every result.
#define CUDA_CHECK(call)                                                                                       \
    do {                                                                                                       \
        const cudaError_t error_ = (call);                                                                     \
        if (error_ != cudaSuccess) {                                                                           \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));    \
            std::exit(1);                                                                                      \
        }                                                                                                      \
    } while (0)

// ---------------------------------------------------------------------------------------- files' numbers

// The header of INPUT.
struct Header {
    int32_t batches, query_heads, key_heads, queries, keys, d, type, causal, window, layout;
    float scale;
};

enum Type { kFloat16, kBfloat16, kE4M3, kE5M2 };
enum Layout { kSeparate, kPacked, kPackedKv };

constexpr int kMostColumns = 256;

// Element `index` of a tensor of `type`. An e5m2 is the upper half of a float16; an e4m3 has 4 bits of exponent, with
// bias 7, and 3 of mantissa.
__device__ inline float load(const void* tensor, size_t index, int type) {
    if (type == kFloat16) return __half2float(static_cast<const __half*>(tensor)[index]);
    if (type == kBfloat16) return __bfloat162float(static_cast<const __nv_bfloat16*>(tensor)[index]);
    const unsigned byte = static_cast<const uint8_t*>(tensor)[index];
    if (type == kE5M2) return __half2float(__ushort_as_half(static_cast<unsigned short>(byte << 8)));
    const int exponent = byte >> 3 & 15, mantissa = byte & 7;
    const float size = exponent ? ldexpf(8 + mantissa, exponent - 10) : ldexpf(mantissa, -9);
    return byte & 128 ? -size : size;
}

// Rounds to nearest, as __float2half and __float2bfloat16 do.
__device__ inline void store(void* tensor, size_t index, int type, float value) {
    if (type == kBfloat16)
        static_cast<__nv_bfloat16*>(tensor)[index] = __float2bfloat16(value);
    else
        static_cast<__half*>(tensor)[index] = __float2half(value);
}

// The rows of a head: row r begins at element first + r * stride.
struct Rows {
    size_t first, stride;
};

__host__ __device__ inline size_t query_values(const Header& h) {
    return size_t(h.batches) * h.query_heads * h.queries * h.d;
}

__host__ __device__ inline size_t key_values(const Header& h) {
    return size_t(h.batches) * h.key_heads * h.keys * h.d;
}

// O: [B, Hq, Nq, d], or [B, Nq, Hq, d] in the packed layouts.
__device__ inline Rows output_rows(const Header& h, size_t batch, size_t head) {
    if (h.layout == kSeparate) return {(batch * h.query_heads + head) * h.queries * h.d, size_t(h.d)};
    return {(batch * h.queries * h.query_heads + head) * h.d, size_t(h.query_heads) * h.d};
}

// Q: like O, or the first third of [B, N, 3, H, d].
__device__ inline Rows query_rows(const Header& h, size_t batch, size_t head) {
    if (h.layout != kPacked) return output_rows(h, batch, head);
    return {(batch * h.queries * 3 * h.query_heads + head) * h.d, size_t(3) * h.query_heads * h.d};
}

// K is slot 0, V slot 1: the other thirds, the halves of [B, Nk, 2, Hkv, d], or [B, Hkv, Nk, d] each.
// They come after Q, unless they are packed with it.
__device__ inline Rows key_rows(const Header& h, size_t batch, size_t head, int slot) {
    const size_t heads = h.key_heads, d = h.d;
    if (h.layout == kPacked) return {((batch * h.keys * 3 + 1 + slot) * heads + head) * d, 3 * heads * d};
    if (h.layout == kPackedKv)
        return {query_values(h) + ((batch * h.keys * 2 + slot) * heads + head) * d, 2 * heads * d};
    return {query_values(h) + slot * key_values(h) + (batch * heads + head) * h.keys * d, d};
}

// Query i sees the keys first to end - 1. The mask is aligned to the bottom right: the last query sees the last
// key.
__device__ inline void keys_seen(const Header& h, int i, int& first, int& end) {
    const int place = i + h.keys - h.queries;
    first = h.window >= 0 && place > h.window ? place - h.window : 0;
    end = h.causal && place + 1 < h.keys ? place + 1 : h.keys;
}

// ---------------------------------------------------------------------------------------------- kernel

// input holds Q, K and V, output O; output_rows, query_rows and key_rows give the rows of a head.
__global__ void attention(const void* input, void* output, Header h) {
    // TODO: your kernel. Query head x reads key head x / (h.query_heads / h.key_heads). Lengths need not be a multiple
    // of your tile. A query that sees no key (keys_seen) gets zeros. O has the input's type, or float16 for float8.
}

static void launch_attention(const void* input, void* output, const Header& h) {
    // TODO: blocks and threads that fit your kernel.
    attention<<<1, 128>>>(input, output, h);
    CUDA_CHECK(cudaGetLastError());    // finds a refused launch: too many threads, too much shared memory, ...
}

// ------------------------------------------------------------------------------------------------ host

[[noreturn]] static void fail(const char* path, const char* what) {
    std::fprintf(stderr, "%s: %s\n", path, what);
    std::exit(1);
}

static void read_exactly(FILE* file, void* to, size_t bytes, const char* path) {
    if (std::fread(to, 1, bytes, file) != bytes) fail(path, "is too short");
}

static void write_file(const char* path, const std::vector<char>& bytes) {
    FILE* const file = std::fopen(path, "wb");
    if (!file) fail(path, "cannot be opened for writing");
    const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    if (std::fclose(file) != 0 || !written) fail(path, "cannot be written (disk full?)");
}

static void check(const Header& h, const char* path) {
    if (h.batches < 1 || h.query_heads < 1 || h.key_heads < 1 || h.queries < 1 || h.keys < 1)
        fail(path, "the header's B, Hq, Hkv, Nq or Nk is not legal");
    if (h.query_heads % h.key_heads != 0) fail(path, "Hq must be a multiple of Hkv");
    if (h.d < 16 || h.d > kMostColumns || h.d % 8 != 0) fail(path, "d must be a multiple of 8 from 16 to 256");
    if (h.type < 0 || h.type > kE5M2) fail(path, "the header's type is not legal");
    if (h.layout < kSeparate || h.layout > kPackedKv) fail(path, "layout must be 0, 1 or 2");
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
    check(h, argv[1]);
    std::vector<char> host((query_values(h) + 2 * key_values(h)) * (h.type == kFloat16 || h.type == kBfloat16 ? 2 : 1));
    read_exactly(in, host.data(), host.size(), argv[1]);
    std::fclose(in);

    void *input, *output;
    CUDA_CHECK(cudaMalloc(&input, host.size()));
    CUDA_CHECK(cudaMalloc(&output, query_values(h) * 2));
    CUDA_CHECK(cudaMemcpy(input, host.data(), host.size(), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(output, 0, query_values(h) * 2));
    launch_attention(input, output, h);
    host.resize(query_values(h) * 2);
    CUDA_CHECK(cudaMemcpy(host.data(), output, host.size(), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(input));
    CUDA_CHECK(cudaFree(output));
    write_file(argv[2], host);
    return 0;
}
