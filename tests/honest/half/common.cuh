// What the honest programs of this folder share: the tensors of a problem, element by element, whatever type and layout
// they have, and which keys a query sees. Files and memory are those of the model solutions, half_program.cuh.
#pragma once

#include <cmath>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "half_program.cuh"

namespace honest {

using half_program::Header;
using half_program::Layout;
using half_program::Strides;

constexpr int kMostColumns = 256;

struct Problem {
    Header h;
    Layout layout;
    const void* input;
    void* output;
    float* workspace;

    __host__ __device__ int queries_of_all() const { return h.batches * h.query_heads * h.queries; }
};

__device__ inline float load(const Problem& p, size_t at) {
    if (p.h.type == half_program::kFloat16) return __half2float(static_cast<const __half*>(p.input)[at]);
    if (p.h.type == half_program::kBfloat16) return __bfloat162float(static_cast<const __nv_bfloat16*>(p.input)[at]);
    const __nv_fp8_interpretation_t kind = p.h.type == half_program::kE4m3 ? __NV_E4M3 : __NV_E5M2;
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(static_cast<const unsigned char*>(p.input)[at], kind)));
}

// Rounded to the type of O.
__device__ inline float rounded(const Problem& p, float x) {
    return p.h.type == half_program::kBfloat16 ? __bfloat162float(__float2bfloat16(x)) : __half2float(__float2half(x));
}

__device__ inline void store(const Problem& p, size_t at, float x) {
    if (p.h.type == half_program::kBfloat16)
        static_cast<__nv_bfloat16*>(p.output)[at] = __float2bfloat16(x);
    else
        static_cast<__half*>(p.output)[at] = __float2half(x);
}

// A query of all heads of all batches, by its number: where its rows begin, and which keys it sees.
struct Query {
    size_t q, o, k, v;    // of K and V: key 0
    int first, end;

    __device__ Query(const Problem& p, int number) {
        const Header& h = p.h;
        const int i = number % h.queries, head = number / h.queries % h.query_heads;
        const int batch = number / h.queries / h.query_heads, key_head = head / (h.query_heads / h.key_heads);
        const auto row = [&](const Strides& s, int of, int at) { return s.start + batch * s.batch + of * s.head + at * s.row; };
        q = row(p.layout.q, head, i);
        o = row(p.layout.o, head, i);
        k = row(p.layout.k, key_head, 0);
        v = row(p.layout.v, key_head, 0);
        const int place = i + h.keys - h.queries;
        end = h.causal ? max(0, min(h.keys, place + 1)) : h.keys;
        first = min(end, h.window >= 0 ? max(0, place - h.window) : 0);
    }
};

// The approximation of 2^x in the style of FlashAttention-4: a polynomial for the fraction, the exponent by its bits.
__device__ inline float polynomial_exp2(float x) {
    if (x < -126.0f) return 0.0f;
    const float whole = floorf(x), y = x - whole;
    const float value =
        1.0f +
        y * (0.69314697f + y * (0.24022884f + y * (0.05550411f + y * (0.009618129f + y * (0.0013333558f + y * 0.000154f)))));
    return __int_as_float(__float_as_int(value) + (int(whole) << 23));
}

}    // namespace honest

#define HONEST_PROGRAM(kernel_launch, bytes)                                                                     \
    namespace honest {                                                                                           \
    inline size_t workspace_bytes(const Header& h) { return bytes; }                                             \
    inline cudaError_t launch(const Header& h, const void* input, void* output, void* workspace, cudaStream_t) { \
        kernel_launch(Problem{h, Layout(h), input, output, static_cast<float*>(workspace)});                     \
        return cudaGetLastError();                                                                               \
    }                                                                                                            \
    }                                                                                                            \
    HALF_PROGRAM(honest, false)
