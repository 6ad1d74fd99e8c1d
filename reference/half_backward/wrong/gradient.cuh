// What the wrong programs of this folder share: naive.cu, with a macro at each place where one goes wrong.
//
//     CAUSAL(h)                 whether the backward pass hides keys after a query's own
//     LSE(x)                    the log-sum-exp of a row
//     D_OF(dot)                 what is subtracted from dP
//     WEIGHT(p)                 what dO is multiplied with for dV
//     DQ_SCALE(h)               the factor of dQ
//     DK_SCALE(h)               that of dK
//     FIRST_HEAD(first, group)  the first query head that adds to dK and dV
//     END_HEAD(first, group)    the one after the last
//     SLOPE(x)                  an element of dS
//     DQ_SUM(x)                 a partial sum of dQ
//     DK_SUM(x)                 one of dK
//     DV_SUM(x)                 one of dV
#pragma once

#ifndef CAUSAL
#define CAUSAL(h) (h).causal
#endif
#ifndef LSE
#define LSE(x) (x)
#endif
#ifndef WEIGHT
#define WEIGHT(p) (p)
#endif
#ifndef D_OF
#define D_OF(dot) (dot)
#endif
#ifndef DQ_SCALE
#define DQ_SCALE(h) (h).scale
#endif
#ifndef DK_SCALE
#define DK_SCALE(h) (h).scale
#endif
#ifndef FIRST_HEAD
#define FIRST_HEAD(first, group) (first)
#endif
#ifndef END_HEAD
#define END_HEAD(first, group) ((first) + (group))
#endif
#ifndef SLOPE
#define SLOPE(x) (x)
#endif
#ifndef DQ_SUM
#define DQ_SUM(x) (x)
#endif
#ifndef DK_SUM
#define DK_SUM(x) (x)
#endif
#ifndef DV_SUM
#define DV_SUM(x) (x)
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

enum Type { kFloat16, kBfloat16 };
enum Layout { kSeparate, kPacked, kPackedKv };

constexpr int kMostColumns = 256;

// Element `index` of a tensor of `type`.
__device__ inline float load(const void* tensor, size_t index, int type) {
    if (type == kFloat16) return __half2float(static_cast<const __half*>(tensor)[index]);
    return __bfloat162float(static_cast<const __nv_bfloat16*>(tensor)[index]);
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

// O and dO: [B, Hq, Nq, d], or [B, Nq, Hq, d] in the packed layouts.
__device__ inline Rows output_rows(const Header& h, size_t batch, size_t head) {
    if (h.layout == kSeparate) return {(batch * h.query_heads + head) * h.queries * h.d, size_t(h.d)};
    return {(batch * h.queries * h.query_heads + head) * h.d, size_t(h.query_heads) * h.d};
}

// Q and dQ: like O, or the first third of [B, N, 3, H, d].
__device__ inline Rows query_rows(const Header& h, size_t batch, size_t head) {
    if (h.layout != kPacked) return output_rows(h, batch, head);
    return {(batch * h.queries * 3 * h.query_heads + head) * h.d, size_t(3) * h.query_heads * h.d};
}

// K or dK is slot 0, V or dV slot 1: the other thirds, the halves of [B, Nk, 2, Hkv, d], or [B, Hkv, Nk, d] each.
// They come after Q, unless they are packed with it.
__device__ inline Rows key_rows(const Header& h, size_t batch, size_t head, int slot) {
    const size_t heads = h.key_heads, d = h.d;
    if (h.layout == kPacked) return {((batch * h.keys * 3 + 1 + slot) * heads + head) * d, 3 * heads * d};
    if (h.layout == kPackedKv)
        return {query_values(h) + ((batch * h.keys * 2 + slot) * heads + head) * d, 2 * heads * d};
    return {query_values(h) + slot * key_values(h) + (batch * heads + head) * h.keys * d, d};
}

// Query i sees the keys from first to before end. The mask is aligned to the bottom right: the last query sees the last
// key.
__device__ inline void keys_seen(const Header& h, int i, int& first, int& end) {
    const int place = i + h.keys - h.queries;
    first = h.window >= 0 && place > h.window ? place - h.window : 0;
    end = h.causal && place + 1 < h.keys ? place + 1 : h.keys;
}


// Rounded to the type of the output, or to bfloat16.
__device__ inline float in_half(float x, int type) {
    return type == kBfloat16 ? __bfloat162float(__float2bfloat16(x)) : __half2float(__float2half(x));
}
__device__ inline float in_bfloat16(float x) { return __bfloat162float(__float2bfloat16(x)); }

// ---------------------------------------------------------------------------------------------- kernels

// What every kernel works on, all in device memory. `input` holds Q, K, V, then dO; `output` O, then dQ, dK, dV. lse
// and dot are one number for each query of each head: the logarithm of the sum of its exponentials, and D = dO . O.
struct Problem {
    Header h;
    const void* input;
    void* output;
    float *lse, *dot;
};

constexpr int kThreads = 64;

__host__ __device__ inline size_t input_values(const Header& h) {
    return query_values(h) + 2 * key_values(h);
}

// Score, before the softmax, and dP of a query and a key.
__device__ inline void score(const Problem& a, size_t q, size_t k, size_t grad, size_t v, float& s, float& dp) {
    s = dp = 0.0f;
    for (int x = 0; x < a.h.d; ++x) {
        s += load(a.input, q + x, a.h.type) * load(a.input, k + x, a.h.type);
        dp += load(a.input, grad + x, a.h.type) * load(a.input, v + x, a.h.type);
    }
    s *= a.h.scale;
}

// O, the log-sum-exp and D of one query a thread. Grid: one block for each kThreads queries of all heads together.
__global__ void attention_forward(Problem a) {
    const Header& h = a.h;
    const size_t number = size_t(blockIdx.x) * kThreads + threadIdx.x;
    if (number >= size_t(h.batches) * h.query_heads * h.queries) return;
    const int i = int(number % h.queries), head = int(number / h.queries % h.query_heads), d = h.d;
    const size_t batch = number / h.queries / h.query_heads;
    const int key_head = head / (h.query_heads / h.key_heads);
    const Rows qs = query_rows(h, batch, head), os = output_rows(h, batch, head);
    const Rows ks = key_rows(h, batch, key_head, 0), vs = key_rows(h, batch, key_head, 1);

    float q[kMostColumns], o[kMostColumns], m = -INFINITY, l = 0.0f, dot = 0.0f;
    for (int x = 0; x < d; ++x) {
        q[x] = load(a.input, qs.first + i * qs.stride + x, h.type);
        o[x] = 0.0f;
    }
    int first, end;
    keys_seen(h, i, first, end);
    for (int key = first; key < end; ++key) {
        float s = 0.0f;
        for (int x = 0; x < d; ++x) s += q[x] * load(a.input, ks.first + key * ks.stride + x, h.type);
        s *= h.scale;
        const float top = fmaxf(m, s), rescale = expf(m - top), p = expf(s - top);
        l = l * rescale + p;
        for (int x = 0; x < d; ++x) o[x] = o[x] * rescale + p * load(a.input, vs.first + key * vs.stride + x, h.type);
        m = top;
    }
    const size_t grad = input_values(h) + os.first + i * os.stride;
    const float inverse = l > 0.0f ? 1.0f / l : 0.0f;    // a query that sees nothing has zeros
    for (int x = 0; x < d; ++x) {
        o[x] *= inverse;
        store(a.output, os.first + i * os.stride + x, h.type, o[x]);
        dot += load(a.input, grad + x, h.type) * o[x];
    }
    a.lse[number] = LSE(m + logf(l));
    a.dot[number] = dot;
}

__device__ inline void keys_seen_backward(Header h, int i, int& first, int& end) {
    h.causal = CAUSAL(h);
    keys_seen(h, i, first, end);
}

// dQ of one query a thread: a sum over the keys that it sees. The same grid.
__global__ void attention_backward_queries(Problem a) {
    const Header& h = a.h;
    const size_t number = size_t(blockIdx.x) * kThreads + threadIdx.x;
    if (number >= size_t(h.batches) * h.query_heads * h.queries) return;
    const int i = int(number % h.queries), head = int(number / h.queries % h.query_heads), d = h.d;
    const size_t batch = number / h.queries / h.query_heads;
    const int key_head = head / (h.query_heads / h.key_heads);
    const Rows qs = query_rows(h, batch, head), os = output_rows(h, batch, head);
    const Rows ks = key_rows(h, batch, key_head, 0), vs = key_rows(h, batch, key_head, 1);

    float dq[kMostColumns];
    for (int x = 0; x < d; ++x) dq[x] = 0.0f;
    int first, end;
    keys_seen_backward(h, i, first, end);
    for (int key = first; key < end; ++key) {
        float s, dp;
        const size_t k = ks.first + key * ks.stride, grad = input_values(h) + os.first + i * os.stride;
        score(a, qs.first + i * qs.stride, k, grad, vs.first + key * vs.stride, s, dp);
        const float ds = SLOPE(expf(s - a.lse[number]) * (dp - D_OF(a.dot[number]))) * DQ_SCALE(h);
        for (int x = 0; x < d; ++x) dq[x] = DQ_SUM(dq[x] + ds * load(a.input, k + x, h.type));
    }
    for (int x = 0; x < d; ++x) store(a.output, query_values(h) + qs.first + i * qs.stride + x, h.type, dq[x]);
}

// dK and dV of one key a thread: sums over the queries that see it, of all heads of the group. Grid: one block for each
// kThreads keys of all key heads together.
__global__ void attention_backward_keys(Problem a) {
    const Header& h = a.h;
    const size_t number = size_t(blockIdx.x) * kThreads + threadIdx.x;
    if (number >= size_t(h.batches) * h.key_heads * h.keys) return;
    const int key = int(number % h.keys), key_head = int(number / h.keys % h.key_heads), d = h.d;
    const size_t batch = number / h.keys / h.key_heads;
    const int group = h.query_heads / h.key_heads;
    const Rows ks = key_rows(h, batch, key_head, 0), vs = key_rows(h, batch, key_head, 1);
    const size_t k = ks.first + key * ks.stride, v = vs.first + key * vs.stride;

    float dk[kMostColumns], dv[kMostColumns];
    for (int x = 0; x < d; ++x) dk[x] = dv[x] = 0.0f;
    const int end_head = END_HEAD(key_head * group, group);
    for (int head = FIRST_HEAD(key_head * group, group); head < end_head; ++head) {
        const Rows qs = query_rows(h, batch, head), os = output_rows(h, batch, head);
        for (int i = 0; i < h.queries; ++i) {
            int first, end;
            keys_seen_backward(h, i, first, end);
            if (key < first || key >= end) continue;
            float s, dp;
            const size_t q = qs.first + i * qs.stride, grad = input_values(h) + os.first + i * os.stride;
            score(a, q, k, grad, v, s, dp);
            const size_t query = (batch * h.query_heads + head) * h.queries + i;
            const float p = expf(s - a.lse[query]), ds = SLOPE(p * (dp - D_OF(a.dot[query]))) * DK_SCALE(h);
            for (int x = 0; x < d; ++x) {
                dk[x] = DK_SUM(dk[x] + ds * load(a.input, q + x, h.type));
                dv[x] = DV_SUM(dv[x] + WEIGHT(p) * load(a.input, grad + x, h.type));
            }
        }
    }
    for (int x = 0; x < d; ++x) {
        store(a.output, query_values(h) + k + x, h.type, dk[x]);
        store(a.output, query_values(h) + v + x, h.type, dv[x]);
    }
}

static void launch(const Problem& a) {
    const auto blocks = [](size_t threads) { return unsigned((threads + kThreads - 1) / kThreads); };
    const size_t queries = query_values(a.h) / a.h.d, keys = key_values(a.h) / a.h.d;
    attention_forward<<<blocks(queries), kThreads>>>(a);
    attention_backward_queries<<<blocks(queries), kThreads>>>(a);
    attention_backward_keys<<<blocks(keys), kThreads>>>(a);
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
    if (h.type < 0 || h.type > kBfloat16) fail(path, "the header's type is not legal");
    if (h.layout < kSeparate || h.layout > kPackedKv) fail(path, "layout must be 0, 1 or 2");
}

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s INPUT OUTPUT\n", argv[0]);
        return 2;
    }
    FILE* const in = std::fopen(argv[1], "rb");
    if (!in) fail(argv[1], "cannot be opened for reading");
    Problem a;
    read_exactly(in, &a.h, sizeof a.h, argv[1]);
    check(a.h, argv[1]);
    const size_t rows = size_t(a.h.batches) * a.h.query_heads * a.h.queries;
    std::vector<char> host((input_values(a.h) + query_values(a.h)) * 2);    // O, dQ, dK, dV take as much as the input
    read_exactly(in, host.data(), host.size(), argv[1]);
    std::fclose(in);

    void *input, *output;
    CUDA_CHECK(cudaMalloc(&input, host.size()));
    CUDA_CHECK(cudaMalloc(&output, host.size()));
    CUDA_CHECK(cudaMalloc(&a.lse, rows * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&a.dot, rows * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(input, host.data(), host.size(), cudaMemcpyHostToDevice));
    a.input = input;
    a.output = output;
    launch(a);
    CUDA_CHECK(cudaMemcpy(host.data(), output, host.size(), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(input));
    CUDA_CHECK(cudaFree(output));
    CUDA_CHECK(cudaFree(a.lse));
    CUDA_CHECK(cudaFree(a.dot));
    write_file(argv[2], host);
    return 0;
}
