// Attention in half precision and its gradient.
//
//     ./half_backward INPUT OUTPUT
//
// This file reads INPUT, sends it to the GPU, calls your kernels, and writes OUTPUT. The kernels are yours: look for
// TODO. The code below defines types, layouts and masks. As it stands, the program compiles, runs, and writes
// zeros, which fails every test.
//
// Kernels with "forward" (or "fwd") in their name are timed as the forward pass, those with "backward" (or "bwd") as
// the backward pass. Keep these words in the names.
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

// Query i sees the keys first to end - 1. The mask is aligned to the bottom right: the last query sees the last
// key.
__device__ inline void keys_seen(const Header& h, int i, int& first, int& end) {
    const int place = i + h.keys - h.queries;
    first = h.window >= 0 && place > h.window ? place - h.window : 0;
    end = h.causal && place + 1 < h.keys ? place + 1 : h.keys;
}

// ---------------------------------------------------------------------------------------------- kernels

// The arguments of every kernel, all in device memory. `input` holds Q, K, V, then dO; `output` O, then dQ, dK, dV. lse
// and dot have one number for each query of each head: the logarithm of the sum of its exponentials, and D = dO . O.
struct Problem {
    Header h;
    const void* input;
    void* output;
    float *lse, *dot;
};

__host__ __device__ inline size_t input_values(const Header& h) {
    return query_values(h) + 2 * key_values(h);
}

// O, and for each query lse, the logarithm of the sum of its exponentials. From lse the backward pass computes any
// probability again: p = exp(s - lse).
__global__ void attention_forward(Problem a) {
    // TODO: your kernel. Query head x reads key head x / (query_heads / key_heads). A query without keys gets zeros.
}

// dQ, dK, dV: compute S again, P = exp(S - lse), dP = dO Vᵀ, dS = P ∘ (dP - D). dK and dV are sums over the heads of a
// group.
__global__ void attention_backward(Problem a) {
    // TODO. Where several blocks add to the same values, add in float32: atomics in half precision lose more than the
    // tolerance allows.
}

static void launch(const Problem& a) {
    // TODO: blocks and threads that fit your kernels.
    attention_forward<<<1, 128>>>(a);
    attention_backward<<<1, 128>>>(a);
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
    CUDA_CHECK(cudaMemset(output, 0, host.size()));
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
