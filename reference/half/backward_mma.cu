// Attention backward in half precision, step 2: tensor cores with mma.sync, and two kernels that add to nobody's sums.
//
// Theory of operation
//
//   With P and the statistics of the forward pass, and D as in backward_statistics.cuh,
//
//       dV = Pᵀ dO        dP = dO Vᵀ        dS = P ∘ (dP - D)        dQ = scale dS K        dK = scale dSᵀ Q
//
//   dK and dV are sums over queries, dQ is a sum over keys. One kernel for all three multiplies five times per tile and
//   has to add to dQ from many blocks at once. Two kernels, one with blocks of keys and one with blocks of queries,
//   multiply seven times, because both need S and dP; but each keeps its sums in registers from the first tile to the
//   last, there are no atomic additions, and the same input gives the same bits every time.
//
//   key_gradients: a warp owns 16 keys and computes Sᵀ = K Qᵀ and dPᵀ = V dOᵀ for 16 or 32 queries at a time. These come
//   out of mma.sync as it wants them for the left operands of dV += Pᵀ dO and dK += dSᵀ Q, as in the forward pass.
//   query_gradients: a warp owns 16 queries; S = Q Kᵀ, dP = dO Vᵀ, dQ += dS K.
//
//   Scores are never stored: P comes back as 2^(s - L). For d > 128 the sums of dK and dV are too many for the registers
//   of one warp: key_gradients then runs twice, once for each. Under grouped heads, a block of keys walks through the
//   query heads of its group, one after the other. Copies are one tile ahead.
//
// Needs sm_80 or newer. Build: nvcc -O3 -std=c++17 -arch=native mma.cu -o half_backward

#define MMA_PART
#include "mma.cu"

#include "backward_statistics.cuh"

namespace mma_backward {

using namespace mma;
using half_backward::Workspace;

template <class Half>
struct Tensors {
    const Half *q, *k, *v, *g;    // g: dO
    Half *dq, *dk, *dv;
    Strides q_strides, k_strides, v_strides, g_strides;    // those of dQ, dK, dV are those of Q, K, V
};

template <class Half>
struct Gradients {
    Tensors<Half> at;
    const float *l, *d;
    int queries, keys, query_heads, key_heads, dim, padded_queries, causal, window;
    float scale, log2_scale;
};

template <int D>
constexpr int kStep = D <= 128 ? 32 : 16;    // rows that stream by, at a time

template <int D>
constexpr int kSharedBytes = (2 * kRows + 4 * kStep<D>)*Tile<D>::Pitch * 2;    // two resident tiles, two stages of two

__device__ __forceinline__ bool is_hidden(int key, int query_at_key, int keys, int causal, int window) {
    return key >= keys || (causal && key > query_at_key) || (window >= 0 && key < query_at_key - window);
}

// Rows `row` and `row + 8` of a gradient.
template <int D, class Half>
__device__ __forceinline__ void store(const float (&sums)[D / 8][4], Half* to, size_t stride, int row, int rows, int dim,
                                      float factor) {
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int n = 0; n < D / 8; ++n)
            if (row + 8 * r < rows && n * 8 < dim)
                *reinterpret_cast<uint32_t*>(to + (row + 8 * r) * stride + n * 8 + threadIdx.x % 4 * 2) =
                    pack<Half>(sums[n][2 * r] * factor, sums[n][2 * r + 1] * factor);
}

// ------------------------------------------------------------------------------------------------- dK and dV

template <int D, bool Dk, bool Dv, class Half>
__global__ void __launch_bounds__(kThreads) key_gradients(Gradients<Half> p) {
    constexpr int Step = kStep<D>, Pitch = Tile<D>::Pitch;
    extern __shared__ __align__(16) char shared[];
    Half *const k_tile = reinterpret_cast<Half*>(shared), *const v_tile = k_tile + kRows * Pitch;
    Half* const stages = v_tile + kRows * Pitch;

    const int first_key = blockIdx.x * kRows, head = blockIdx.y, batch = blockIdx.z, offset = p.keys - p.queries;
    const int members = p.query_heads / p.key_heads;
    const int last_key = min(first_key + kRows, p.keys) - 1;
    const int begin = p.causal ? max(0, first_key - offset) : 0;
    const int end = p.window >= 0 ? min(p.queries, last_key - offset + p.window + 1) : p.queries;
    const int first_tile = begin / Step, tiles = max(0, (end + Step - 1) / Step - first_tile), turns = tiles * members;

    const auto start_tile = [&](int turn) {
        const int query_head = head * members + turn / tiles, row = (first_tile + turn % tiles) * Step;
        Half* const stage = stages + turn % 2 * 2 * Step * Pitch;
        Tile<D>::template start_copy<Step>(
            stage, p.at.q + batch * p.at.q_strides.batch + query_head * p.at.q_strides.head, p.at.q_strides.row, row,
            p.queries, p.dim);
        Tile<D>::template start_copy<Step>(
            stage + Step * Pitch, p.at.g + batch * p.at.g_strides.batch + query_head * p.at.g_strides.head,
            p.at.g_strides.row, row, p.queries, p.dim);
        commit_copies();
    };
    Tile<D>::template start_copy<kRows>(k_tile, p.at.k + batch * p.at.k_strides.batch + head * p.at.k_strides.head,
                                        p.at.k_strides.row, first_key, p.keys, p.dim);
    if (Dk)
        Tile<D>::template start_copy<kRows>(v_tile, p.at.v + batch * p.at.v_strides.batch + head * p.at.v_strides.head,
                                            p.at.v_strides.row, first_key, p.keys, p.dim);
    commit_copies();
    if (turns > 0) start_tile(0);

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int my_key = first_key + warp * 16 + lane / 4;    // and 8 further on
    const Half* const k_lane = left_operand<D>(k_tile + warp * 16 * Pitch);
    const Half* const v_lane = left_operand<D>(v_tile + warp * 16 * Pitch);
    float dk[Dk ? D / 8 : 1][4] = {}, dv[Dv ? D / 8 : 1][4] = {};

    for (int turn = 0; turn < turns; ++turn) {
        wait_copies<0>();
        __syncthreads();    // this tile is there, and nobody reads the one before it
        if (turn + 1 < turns) start_tile(turn + 1);
        const Half* const q_tile = stages + turn % 2 * 2 * Step * Pitch;
        const Half* const g_tile = q_tile + Step * Pitch;
        const int first_query = (first_tile + turn % tiles) * Step;
        const size_t statistics =
            size_t(batch * p.query_heads + head * members + turn / tiles) * p.padded_queries + first_query;

        float s[Step / 8][4], dp[Step / 8][4];
        multiply_by_rows<D, Step>(s, k_lane, right_operand_by_rows<D>(q_tile));
#pragma unroll
        for (int n = 0; n < Step / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int query = n * 8 + lane % 4 * 2 + i % 2;
                s[n][i] = exp2_fast(fmaf(s[n][i], p.log2_scale, -p.l[statistics + query]));
                if (is_hidden(my_key + i / 2 * 8, first_query + query + offset, p.keys, p.causal, p.window)) s[n][i] = 0.0f;
            }
        if constexpr (Dv) add_by_columns<D, Step>(dv, s, right_operand_by_columns<D>(g_tile));
        if constexpr (Dk) {
            multiply_by_rows<D, Step>(dp, v_lane, right_operand_by_rows<D>(g_tile));
#pragma unroll
            for (int n = 0; n < Step / 8; ++n)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    dp[n][i] = s[n][i] * (dp[n][i] - p.d[statistics + n * 8 + lane % 4 * 2 + i % 2]);
            add_by_columns<D, Step>(dk, dp, right_operand_by_columns<D>(q_tile));
        }
    }
    wait_copies<0>();
    if constexpr (Dk)
        store<D>(dk, p.at.dk + batch * p.at.k_strides.batch + head * p.at.k_strides.head, p.at.k_strides.row, my_key,
                 p.keys, p.dim, p.scale);
    if constexpr (Dv)
        store<D>(dv, p.at.dv + batch * p.at.v_strides.batch + head * p.at.v_strides.head, p.at.v_strides.row, my_key,
                 p.keys, p.dim, 1.0f);
}

// -------------------------------------------------------------------------------------------------------- dQ

template <int D, class Half>
__global__ void __launch_bounds__(kThreads) query_gradients(Gradients<Half> p) {
    constexpr int Step = kStep<D>, Pitch = Tile<D>::Pitch;
    extern __shared__ __align__(16) char shared[];
    Half *const q_tile = reinterpret_cast<Half*>(shared), *const g_tile = q_tile + kRows * Pitch;
    Half* const stages = g_tile + kRows * Pitch;

    const int first_row = (gridDim.x - 1 - blockIdx.x) * kRows, head = blockIdx.y, batch = blockIdx.z;
    const int key_head = head / (p.query_heads / p.key_heads), offset = p.keys - p.queries;
    const int last_row = min(first_row + kRows, p.queries) - 1;
    const int end = p.causal ? min(p.keys, last_row + offset + 1) : p.keys;
    const int begin = p.window >= 0 ? max(0, first_row + offset - p.window) : 0;
    const int first_tile = begin / Step, tiles_end = end > begin ? (end + Step - 1) / Step : first_tile;

    const auto start_tile = [&](int tile) {
        Half* const stage = stages + tile % 2 * 2 * Step * Pitch;
        Tile<D>::template start_copy<Step>(stage, p.at.k + batch * p.at.k_strides.batch + key_head * p.at.k_strides.head,
                                           p.at.k_strides.row, tile * Step, p.keys, p.dim);
        Tile<D>::template start_copy<Step>(stage + Step * Pitch,
                                           p.at.v + batch * p.at.v_strides.batch + key_head * p.at.v_strides.head,
                                           p.at.v_strides.row, tile * Step, p.keys, p.dim);
        commit_copies();
    };
    Tile<D>::template start_copy<kRows>(q_tile, p.at.q + batch * p.at.q_strides.batch + head * p.at.q_strides.head,
                                        p.at.q_strides.row, first_row, p.queries, p.dim);
    Tile<D>::template start_copy<kRows>(g_tile, p.at.g + batch * p.at.g_strides.batch + head * p.at.g_strides.head,
                                        p.at.g_strides.row, first_row, p.queries, p.dim);
    commit_copies();
    if (tiles_end > first_tile) start_tile(first_tile);

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int my_row = first_row + warp * 16 + lane / 4;    // and 8 further on
    const Half* const q_lane = left_operand<D>(q_tile + warp * 16 * Pitch);
    const Half* const g_lane = left_operand<D>(g_tile + warp * 16 * Pitch);
    const size_t statistics = size_t(batch * p.query_heads + head) * p.padded_queries + my_row;
    const float l[2] = {p.l[statistics], p.l[statistics + 8]}, d[2] = {p.d[statistics], p.d[statistics + 8]};
    float dq[D / 8][4] = {};

    for (int tile = first_tile; tile < tiles_end; ++tile) {
        wait_copies<0>();
        __syncthreads();    // this tile is there, and nobody reads the one before it
        if (tile + 1 < tiles_end) start_tile(tile + 1);
        const Half* const k_tile = stages + tile % 2 * 2 * Step * Pitch;
        float s[Step / 8][4], dp[Step / 8][4];
        multiply_by_rows<D, Step>(s, q_lane, right_operand_by_rows<D>(k_tile));
        multiply_by_rows<D, Step>(dp, g_lane, right_operand_by_rows<D>(k_tile + Step * Pitch));
#pragma unroll
        for (int n = 0; n < Step / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int key = tile * Step + n * 8 + lane % 4 * 2 + i % 2, at_key = my_row + i / 2 * 8 + offset;
                s[n][i] = exp2_fast(fmaf(s[n][i], p.log2_scale, -l[i / 2]));
                if (is_hidden(key, at_key, p.keys, p.causal, p.window)) s[n][i] = 0.0f;
                s[n][i] *= dp[n][i] - d[i / 2];
            }
        add_by_columns<D, Step>(dq, s, right_operand_by_columns<D>(k_tile));
    }
    wait_copies<0>();
    store<D>(dq, p.at.dq + batch * p.at.q_strides.batch + head * p.at.q_strides.head, p.at.q_strides.row, my_row,
             p.queries, p.dim, p.scale);
}

// ------------------------------------------------------------------------------------------------- launching

template <class Half>
cudaError_t start(void (*kernel)(Gradients<Half>), int rows, int heads, int shared_bytes, const Header& h,
                  const Gradients<Half>& p, cudaStream_t stream) {
    const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (error != cudaSuccess) return error;
    kernel<<<dim3((rows + kRows - 1) / kRows, heads, h.batches), kThreads, shared_bytes, stream>>>(p);
    return cudaGetLastError();
}

template <int D, class Half>
cudaError_t launch_as(const Header& h, const Gradients<Half>& p, cudaStream_t stream) {
    const auto for_keys = [&](auto kernel) {
        return start<Half>(kernel, h.keys, h.key_heads, kSharedBytes<D>, h, p, stream);
    };
    cudaError_t error;
    if constexpr (D <= 128) {
        error = for_keys(key_gradients<D, true, true, Half>);
    } else {
        error = for_keys(key_gradients<D, true, false, Half>);
        if (error == cudaSuccess) error = for_keys(key_gradients<D, false, true, Half>);
    }
    return error == cudaSuccess
               ? start<Half>(query_gradients<D, Half>, h.queries, h.query_heads, kSharedBytes<D>, h, p, stream)
               : error;
}

// Gradients alone, after a forward pass that left O in `output` and its statistics in the workspace.
template <class Half>
cudaError_t launch_gradients(const Header& h, const void* input, void* output, const Workspace& w, cudaStream_t stream) {
    const half_program::Layout layout(h);
    half_backward::start_preparing<Half>(h, layout, input, output, w, stream);
    const Half* const in = static_cast<const Half*>(input);
    Half* const out = static_cast<Half*>(output) + h.query_elements();    // after O
    const Tensors<Half> tensors{in + layout.q.start,  in + layout.k.start,  in + layout.v.start, in + h.input_elements(),
                                out + layout.q.start, out + layout.k.start, out + layout.v.start,
                                layout.q,             layout.k,             layout.v,            layout.o};
    const Gradients<Half> p{tensors,
                            w.l,
                            w.d,
                            h.queries,
                            h.keys,
                            h.query_heads,
                            h.key_heads,
                            h.dim,
                            int(Workspace::padded_queries(h)),
                            h.causal,
                            std::min(h.window, h.queries + h.keys),
                            h.scale,
                            h.scale * float(M_LOG2E)};
    if (h.dim <= 32) return launch_as<32>(h, p, stream);
    if (h.dim <= 64) return launch_as<64>(h, p, stream);
    if (h.dim <= 96) return launch_as<96>(h, p, stream);
    if (h.dim <= 128) return launch_as<128>(h, p, stream);
    if (h.dim <= 192) return launch_as<192>(h, p, stream);
    return launch_as<256>(h, p, stream);
}

template <class Half>
cudaError_t launch_type(const Header& h, const void* input, void* output, void* workspace, cudaStream_t stream) {
    const Workspace w(h, workspace);
    const cudaError_t error = mma::launch_type<Half>(h, input, output, w.forward, stream);
    return error == cudaSuccess ? launch_gradients<Half>(h, input, output, w, stream) : error;
}

inline size_t workspace_bytes(const Header& h) { return Workspace(h, nullptr).bytes; }

inline cudaError_t launch(const Header& h, const void* input, void* output, void* workspace, cudaStream_t stream) {
    if (h.type == half_program::kBfloat16) return launch_type<__nv_bfloat16>(h, input, output, workspace, stream);
    return launch_type<__half>(h, input, output, workspace, stream);
}

}    // namespace mma_backward

#ifndef BACKWARD_MMA_PART
#ifdef HALF_LIBRARY
extern "C" int half_gradients(const half_program::Header* header, const void* input, void* output, void* workspace,
                              cudaStream_t stream) {
    const mma_backward::Workspace w(*header, workspace);
    if (header->type == half_program::kBfloat16)
        return int(mma_backward::launch_gradients<__nv_bfloat16>(*header, input, output, w, stream));
    return int(mma_backward::launch_gradients<__half>(*header, input, output, w, stream));
}
#endif

HALF_PROGRAM(mma_backward, true)
#endif
