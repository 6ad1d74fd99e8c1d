// What the wrong programs of this folder share: naive.cu, with a macro at each place where one goes wrong.
//
//     KEY_HEAD(head, h)  the key head of a query head
//     PLACE(i, h)        the key at which query i stands
//     CAUSAL(h)          whether keys after that are hidden
//     WINDOW(h)          how many keys before it are seen
//     AHEAD              how many keys after it are seen all the same
//     TYPE(h)            the type of input and output
//     SCALE(h)           what scores are multiplied with
//     SLOTS              the slots of K and V
//     PRODUCT(x)         a partial sum of a score
//     SCORE(x)           a score
//     WEIGHT(x)          an exponential
//     TOTAL(x)           a partial sum of l
//     SUM(x)             a partial sum of O
//     MAXIMUM(m, s)      the maximum so far
//     RESCALE_L(x)       the factor of l when the maximum grows
//     RESCALE_O(x)       that of O
//     EXP(x)             the exponential
//     PADDING(end)       keys beyond the last that count with score 0
//     PACKED_SLOT(heads, head, slot): where Q, K or V (0, 1, 2) of a head lies in a row of layout 1
//     INVERSE(l)         what O is multiplied with at the end
#pragma once

#ifndef PACKED_SLOT
#define PACKED_SLOT(heads, head, slot) ((slot) * (heads) + (head))
#endif
#ifndef KEY_HEAD
#define KEY_HEAD(head, h) (head) / ((h).query_heads / (h).key_heads)
#endif
#ifndef PLACE
#define PLACE(i, h) (i) + (h).keys - (h).queries
#endif
#ifndef CAUSAL
#define CAUSAL(h) (h).causal
#endif
#ifndef WINDOW
#define WINDOW(h) (h).window
#endif
#ifndef AHEAD
#define AHEAD 0
#endif
#ifndef TYPE
#define TYPE(h) (h).type
#endif
#ifndef SCALE
#define SCALE(h) (h).scale
#endif
#ifndef SLOTS
#define SLOTS 0, 1
#endif
#ifndef PRODUCT
#define PRODUCT(x) (x)
#endif
#ifndef SCORE
#define SCORE(x) (x)
#endif
#ifndef WEIGHT
#define WEIGHT(x) (x)
#endif
#ifndef TOTAL
#define TOTAL(x) (x)
#endif
#ifndef SUM
#define SUM(x) (x)
#endif
#ifndef MAXIMUM
#define MAXIMUM(m, s) fmaxf(m, s)
#endif
#ifndef RESCALE_L
#define RESCALE_L(x) (x)
#endif
#ifndef RESCALE_O
#define RESCALE_O(x) (x)
#endif
#ifndef EXP
#define EXP(x) expf(x)
#endif
#ifndef PADDING
#define PADDING(end) 0
#endif
#ifndef INVERSE
#define INVERSE(l) ((l) > 0.0f ? 1.0f / (l) : 0.0f)
#endif

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

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

// Where the rows of a head lie: row r begins at element first + r * stride.
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
    const size_t heads = h.query_heads;
    return {(batch * h.queries * 3 * heads + PACKED_SLOT(heads, head, 0)) * h.d, 3 * heads * h.d};
}

// K is slot 0, V slot 1: the other thirds, the halves of [B, Nk, 2, Hkv, d], or [B, Hkv, Nk, d] each.
// They come after Q, unless they are packed with it.
__device__ inline Rows key_rows(const Header& h, size_t batch, size_t head, int slot) {
    const size_t heads = h.key_heads, d = h.d;
    if (h.layout == kPacked)
        return {(batch * h.keys * 3 * heads + PACKED_SLOT(heads, head, 1 + slot)) * d, 3 * heads * d};
    if (h.layout == kPackedKv)
        return {query_values(h) + ((batch * h.keys * 2 + slot) * heads + head) * d, 2 * heads * d};
    return {query_values(h) + slot * key_values(h) + (batch * heads + head) * h.keys * d, d};
}

// Query i sees the keys from first to before end. The mask is aligned to the bottom right: the last query sees the last
// key.
__device__ inline void keys_seen(const Header& h, int i, int& first, int& end) {
    const int place = PLACE(i, h);
    first = WINDOW(h) >= 0 && place > WINDOW(h) ? place - WINDOW(h) : 0;
    end = CAUSAL(h) && place + 1 + AHEAD < h.keys ? place + 1 + AHEAD : h.keys;
}


// Rounded to the type of the output, or to bfloat16.
__device__ inline float in_half(float x, int type) {
    return type == kBfloat16 ? __bfloat162float(__float2bfloat16(x)) : __half2float(__float2half(x));
}
__device__ inline float in_bfloat16(float x) { return __bfloat162float(__float2bfloat16(x)); }

// ---------------------------------------------------------------------------------------------- kernel

constexpr int kThreads = 64;

// Grid: one block for each kThreads queries of all heads together. `input` holds Q, K and V.
__global__ void attention(const void* input, void* output, Header h) {
    const size_t number = size_t(blockIdx.x) * kThreads + threadIdx.x;    // of the query, counted through all heads
    if (number >= size_t(h.batches) * h.query_heads * h.queries) return;
    const int i = int(number % h.queries), head = int(number / h.queries % h.query_heads);
    const size_t batch = number / h.queries / h.query_heads;
    const int key_head = KEY_HEAD(head, h), type = TYPE(h);
    const Rows qs = query_rows(h, batch, head), os = output_rows(h, batch, head);
    const int slots[] = {SLOTS};
    const Rows ks = key_rows(h, batch, key_head, slots[0]), vs = key_rows(h, batch, key_head, slots[1]);
    const int d = h.d;

    float q[kMostColumns], o[kMostColumns], m = -INFINITY, l = 0.0f;
    for (int x = 0; x < d; ++x) {
        q[x] = load(input, qs.first + i * qs.stride + x, type);
        o[x] = 0.0f;
    }
    int first, end;
    keys_seen(h, i, first, end);
    for (int key = first; key < end; ++key) {
        float s = 0.0f;
        for (int x = 0; x < d; ++x) s = PRODUCT(s + q[x] * load(input, ks.first + key * ks.stride + x, type));
        s = SCORE(s * SCALE(h));
        const float top = MAXIMUM(m, s), rescale = EXP(m - top), p = WEIGHT(EXP(s - top));
        l = TOTAL(l * RESCALE_L(rescale) + p);
        for (int x = 0; x < d; ++x)
            o[x] = SUM(o[x] * RESCALE_O(rescale) + p * load(input, vs.first + key * vs.stride + x, type));
        m = top;
    }
    if (PADDING(h.keys) > 0) {
        const float top = fmaxf(m, 0.0f);
        l = l * expf(m - top) + PADDING(h.keys) * expf(-top);
        for (int x = 0; x < d; ++x) o[x] *= expf(m - top);
    }
    const float inverse = INVERSE(l);
    for (int x = 0; x < d; ++x)
        store(output, os.first + i * os.stride + x, type == kBfloat16 ? kBfloat16 : kFloat16, o[x] * inverse);
}

static void launch_attention(const void* input, void* output, const Header& h) {
    const size_t queries = size_t(h.batches) * h.query_heads * h.queries;
    attention<<<unsigned((queries + kThreads - 1) / kThreads), kThreads>>>(input, output, h);
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
    launch_attention(input, output, h);
    host.resize(query_values(h) * 2);
    CUDA_CHECK(cudaMemcpy(host.data(), output, host.size(), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(input));
    CUDA_CHECK(cudaFree(output));
    write_file(argv[2], host);
    return 0;
}
