// What the gradients need of each row beside its tensors: L, how large the sum of its exponentials was, and D = sum dO ∘ O.
//
// dS = P ∘ (dP - D), since the derivative of a softmax is P ∘ (dP - sum P ∘ dP), and that sum is that of dO ∘ O. P itself
// comes back from a score s as 2^(s - L), with s and L in powers of two. Rows that see nothing, and rows behind the last
// one, have L = +inf: their P is 0, and kernels need not ask. All rows of a head are padded, for tiles that reach too far.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "half_program.cuh"

namespace half_backward {

using half_program::Header;
using half_program::Strides;

struct Workspace {
    int* schedule;
    float *forward, *l, *d;
    size_t bytes;

    Workspace(const Header& h, void* start) {
        const size_t heads = size_t(h.batches) * h.query_heads, padded = padded_queries(h);
        char* at = static_cast<char*>(start);
        schedule = reinterpret_cast<int*>(at), at += 256;
        l = reinterpret_cast<float*>(at), at += heads * padded * 4;
        d = reinterpret_cast<float*>(at), at += heads * padded * 4;
        forward = reinterpret_cast<float*>(at), at += heads * h.queries * 4;
        bytes = at - static_cast<char*>(start);
    }
    // Tiles of any size reach behind the last row.
    static size_t padded_queries(const Header& h) {
        return (size_t(h.queries) / 192 + 2) * 192;
    }
};

// One warp a row.
template <class Half>
__global__ void __launch_bounds__(256)
prepare(const Half* o, const Half* g, Strides strides, const float* forward, float* l, float* d, int queries,
        int padded_queries, int heads, int dim) {
    const int row = blockIdx.x * 8 + threadIdx.x / 32, head = blockIdx.y, batch = blockIdx.z, lane = threadIdx.x % 32;
    if (row >= padded_queries) return;
    const size_t flat_head = size_t(batch) * heads + head;
    float sum = 0.0f;
    if (row < queries) {
        const size_t start = strides.start + batch * strides.batch + head * strides.head + row * strides.row;
        for (int i = lane; i < dim; i += 32) sum += float(o[start + i]) * float(g[start + i]);
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) {
        const float x = row < queries ? forward[flat_head * queries + row] : -INFINITY;
        l[flat_head * padded_queries + row] = x == -INFINITY ? INFINITY : x;
        d[flat_head * padded_queries + row] = sum;
    }
}

template <class Half>
void start_preparing(const Header& h, const half_program::Layout& layout, const void* input, const void* output,
                     const Workspace& w, cudaStream_t stream) {
    const int padded = int(Workspace::padded_queries(h));
    const dim3 grid((padded + 7) / 8, h.query_heads, h.batches);
    prepare<<<grid, 256, 0, stream>>>(static_cast<const Half*>(output),
                                      static_cast<const Half*>(input) + h.input_elements(), layout.o, w.forward, w.l,
                                      w.d, h.queries, padded, h.query_heads, h.dim);
}

}    // namespace half_backward
