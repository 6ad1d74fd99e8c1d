// Attention and its gradient, version 2 of 2: tiles in shared memory, patches in registers, dQ by atomics.
//
// Theory of operation
//
//   Forward is the kernel of hw4's flash2.cu, which says how it works: rows outside, keys inside, a patch of 8 × 8 for
//   every lane. It leaves, beside O, one number a row: the logarithm of the sum of exponentials, here to the base 2.
//   With it the backward pass computes any tile of P again without looking at the rest of its row.
//
//   Backward, one kernel. A block owns 64 keys: their K and V in shared memory, their dK and dV in registers. It walks
//   over all rows, 64 a step, and computes five products, each 64 × 64 × d multiply-adds:
//
//       S = Q Kᵀ      dP = dO Vᵀ      then P = exp(S - lse), dS = P ∘ (dP - D) / sqrt(d)
//       dV += Pᵀ dO   dK += dSᵀ Q     dQ += dS K
//
//   dQ is the odd one out: it belongs to the rows, and every block has a part of all of it. The parts are added
//   with atomics in global memory, whose order changes the last digits from run to run. The other way, a second kernel
//   with rows outside, needs S and dP again: seven products instead of five.
//
//   Registers. A thread computes 8 × 4 scores with 12 loads of 16 bytes for 128 multiply-adds, and likewise in the
//   other products. Tiles are row-major with rows padded by 16 bytes: in S the 4 columns of a step lie side by side in both
//   factors, so no tile is ever transposed, and the 8 rows that a quarter of a warp reads lie in different banks.
//
//   Shared memory of the backward pass at d = 64: 102.5 KiB, two blocks on an SM of an H100, one on an A100. Where a
//   block cannot have it, tiles of 32 do with less than 48 KiB.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_pipeline_primitives.h>
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

// What every kernel works on, all in device memory. `input` holds Q, K, V, dO (each n × d) of batch 0, of batch 1, ...;
// o, dq, dk, dv each hold all batches one after the other. lse and dot are one number a row, for the backward pass:
// the logarithm of the sum of the row's exponentials, and D = dO . O.
struct Problem {
    const float* input;
    float *o, *dq, *dk, *dv, *lse, *dot;
    int batches, n, d;
};

constexpr float kLog2e = 1.4426950408889634f;
constexpr int kPad = 4;    // floats: rows of a tile begin 4 banks apart, and stay aligned to 16 bytes

// Of the backward pass: T rows and T keys a tile, patches of 32 scores a thread.
template <int D, int T>
struct Shape {
    static constexpr int Threads = T * T / 32;
    static constexpr int Stride = D + kPad;        // of tiles of Q, K, V, dO
    static constexpr int ScoreStride = T + kPad;   // of tiles of P and dS
    static constexpr int ColumnGroups = D / 4;     // a thread owns 4 columns of a T × D product
    static constexpr int Groups = Threads / ColumnGroups;
    static constexpr int Rows = T / Groups;        // and this many of its rows
    static constexpr size_t Bytes = sizeof(float) * (4 * T * Stride + 2 * T * ScoreStride + 2 * T);
};
// What every GPU gives a block without being asked: the fallback must do with it.
static_assert(Shape<64, 32>::Bytes <= 48 * 1024);

__device__ __forceinline__ float4 load4(const float* from) { return *reinterpret_cast<const float4*>(from); }
__device__ __forceinline__ void store4(float* to, float4 value) { *reinterpret_cast<float4*>(to) = value; }

__device__ __forceinline__ float dot(float4 a, float4 b, float sum) {
    return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

__device__ __forceinline__ void add_scaled(float4& sum, float a, float4 b) {
    sum.x = fmaf(a, b.x, sum.x), sum.y = fmaf(a, b.y, sum.y), sum.z = fmaf(a, b.z, sum.z), sum.w = fmaf(a, b.w, sum.w);
}

// T rows of D floats of global memory into a padded tile.
template <int D, int T>
__device__ __forceinline__ void load_tile(float* tile, const float* from) {
    constexpr int Threads = Shape<D, T>::Threads;
#pragma unroll
    for (int i = threadIdx.x; i < T * D / 4; i += Threads)
        store4(tile + i / (D / 4) * (D + kPad) + i % (D / 4) * 4, load4(from + 4 * i));
}

// s[i][j] = a row r0 + i * RowStep . b row k0 + j * KeyStep: a patch of a product of two tiles, A Bᵀ.
template <int D, int T, int PatchRows, int PatchKeys, int RowStep, int KeyStep>
__device__ __forceinline__ void score_patch(float (&s)[PatchRows][PatchKeys], const float* a, const float* b, int r0,
                                            int k0) {
    constexpr int Stride = Shape<D, T>::Stride;
#pragma unroll
    for (int i = 0; i < PatchRows; ++i)
#pragma unroll
        for (int j = 0; j < PatchKeys; ++j) s[i][j] = 0.0f;
#pragma unroll 2
    for (int x = 0; x < D; x += 4) {
        float4 y[PatchRows], z[PatchKeys];
#pragma unroll
        for (int i = 0; i < PatchRows; ++i) y[i] = load4(a + (r0 + i * RowStep) * Stride + x);
#pragma unroll
        for (int j = 0; j < PatchKeys; ++j) z[j] = load4(b + (k0 + j * KeyStep) * Stride + x);
#pragma unroll
        for (int i = 0; i < PatchRows; ++i)
#pragma unroll
            for (int j = 0; j < PatchKeys; ++j) s[i][j] = dot(y[i], z[j], s[i][j]);
    }
}

// sum[i] += P row (row + i * Groups) times the columns `column` .. `column` + 3 of B: a patch of P B.
template <int D, int T>
__device__ __forceinline__ void rows_times_tile(float4 (&sum)[Shape<D, T>::Rows], const float* p, const float* b,
                                                int row, int column) {
    using S = Shape<D, T>;
#pragma unroll 1
    for (int k = 0; k < T; k += 4) {
        float4 weight[S::Rows];
#pragma unroll
        for (int i = 0; i < S::Rows; ++i) weight[i] = load4(p + (row + i * S::Groups) * S::ScoreStride + k);
        const float* const from = b + k * S::Stride + column;
        const float4 b0 = load4(from), b1 = load4(from + S::Stride), b2 = load4(from + 2 * S::Stride);
        const float4 b3 = load4(from + 3 * S::Stride);
#pragma unroll
        for (int i = 0; i < S::Rows; ++i) {
            add_scaled(sum[i], weight[i].x, b0);
            add_scaled(sum[i], weight[i].y, b1);
            add_scaled(sum[i], weight[i].z, b2);
            add_scaled(sum[i], weight[i].w, b3);
        }
    }
}

// ---- forward

constexpr int kPatch = 8;    // a lane's patch is kPatch × kPatch of S and of O

template <int D, int Warps>
struct ForwardTile {
    static constexpr int ColumnGroups = D / kPatch;          // lanes side by side: 4 or 8
    static constexpr int RowGroups = 32 / ColumnGroups;      // lanes one above the other: 8 or 4
    static constexpr int WarpRows = RowGroups * kPatch;      // 64 or 32
    static constexpr int Rows = Warps * WarpRows;
    static constexpr int Keys = D;                           // a step: makes the patches of S and O the same size
    static constexpr int Threads = Warps * 32;

    // Floats from one row to the next in shared memory.
    static constexpr int QStride = D == 32 ? D + 4 : D, KStride = D + 4, VStride = D, PStride = D == 32 ? 48 : 64;
    static constexpr size_t Bytes =
        sizeof(float) * (size_t(Rows) * QStride + Keys * KStride + Keys * VStride + size_t(Rows) * PStride);

    // Where rows lie in shared memory: rows that neighbouring groups of lanes read together are neighbours.
    static __device__ __forceinline__ int q_place(int row) {
        return row / WarpRows * WarpRows + row % kPatch * RowGroups + row % WarpRows / kPatch;
    }
    static __device__ __forceinline__ int k_place(int key) {
        return key / (Keys / 2) * (Keys / 2) + key % 4 * ColumnGroups + key % (Keys / 2) / 4;
    }
    static __device__ __forceinline__ int v_place(int key) { return key; }
};

// 2^x in one instruction (2 ulp; results below 2^-126 become 0, which no sum here can feel).
__device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Starts copying Count rows of D floats; row r goes to row place(r) of `to`.
template <int D, int Count, int Threads, int Stride, typename PlaceOf>
__device__ __forceinline__ void start_copy(float* to, const float* from, PlaceOf place) {
#pragma unroll 8
    for (int i = threadIdx.x; i < Count * D / 4; i += Threads)
        __pipeline_memcpy_async(to + place(i / (D / 4)) * Stride + i % (D / 4) * 4, from + 4 * i, 16);
    __pipeline_commit();
}

// Grid: a block for each ForwardTile::Rows rows of one batch. `scale` is log2(e) / sqrt(D). A lane's rows are the 8 from
// my_row on, its columns of S and of O 4 * column_group + 0..3 and as many from D / 2 on.
template <int D, int Warps>
__global__ void __launch_bounds__(Warps * 32, 8 / Warps) attention_forward(Problem a, float scale) {
    using T = ForwardTile<D, Warps>;
    constexpr int ColumnGroups = T::ColumnGroups, Keys = T::Keys, Half = D / 2;
    extern __shared__ float4 shared[];
    float* const q_tile = reinterpret_cast<float*>(shared);
    float* const k_tile = q_tile + T::Rows * T::QStride;
    float* const v_tile = k_tile + Keys * T::KStride;
    float* const p_tiles = v_tile + Keys * T::VStride;

    const int tiles = a.n / T::Rows;
    const size_t batch = blockIdx.x / tiles, first_row = size_t(blockIdx.x % tiles) * T::Rows, matrix = size_t(a.n) * D;
    const float* const q = a.input + 4 * batch * matrix;
    const float* const k = q + matrix;
    const float* const v = k + matrix;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row_group = lane / ColumnGroups, column_group = lane % ColumnGroups;
    const int my_row = warp * T::WarpRows + row_group * kPatch;
    const float* const my_q = q_tile + (warp * T::WarpRows + row_group) * T::QStride;
    const float* const my_k = k_tile + column_group * T::KStride;
    float* const my_p = p_tiles + (warp * T::WarpRows + row_group) * T::PStride;

    const auto start_k = [&](int key) {
        start_copy<D, Keys, T::Threads, T::KStride>(k_tile, k + size_t(key) * D, T::k_place);
    };
    start_copy<D, T::Rows, T::Threads, T::QStride>(q_tile, q + first_row * D, T::q_place);
    start_k(0);
    float m[kPatch], l[kPatch], o[kPatch][kPatch] = {};
#pragma unroll
    for (int r = 0; r < kPatch; ++r) m[r] = -INFINITY, l[r] = 0.0f;

    for (int first_key = 0; first_key < a.n; first_key += Keys) {
        __pipeline_wait_prior(0);
        __syncthreads();    // K is there, and nobody still reads the V of the step before
        start_copy<D, Keys, T::Threads, T::VStride>(v_tile, v + size_t(first_key) * D, T::v_place);

        float s[kPatch][kPatch] = {};    // Q Kᵀ
#pragma unroll 2
        for (int x = 0; x < D / 4; ++x) {
            float4 keys[kPatch];
#pragma unroll
            for (int c = 0; c < kPatch; ++c) keys[c] = load4(my_k + c * ColumnGroups * T::KStride + 4 * x);
#pragma unroll
            for (int r = 0; r < kPatch; ++r) {
                const float4 row = load4(my_q + r * T::RowGroups * T::QStride + 4 * x);
#pragma unroll
                for (int c = 0; c < kPatch; ++c) s[r][c] = dot(row, keys[c], s[r][c]);
            }
        }

        float rescale[kPatch];
#pragma unroll
        for (int r = 0; r < kPatch; ++r) {
            float top = s[r][0];
#pragma unroll
            for (int c = 1; c < kPatch; ++c) top = fmaxf(top, s[r][c]);
#pragma unroll
            for (int other = 1; other < ColumnGroups; other *= 2)
                top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, other));
            top = fmaxf(m[r], top * scale);
            rescale[r] = exp2_fast(m[r] - top);    // 0 at the first step, where m is -infinity
            m[r] = top;
            float sum = 0.0f;
#pragma unroll
            for (int c = 0; c < kPatch; ++c) sum += s[r][c] = exp2_fast(fmaf(s[r][c], scale, -top));
            l[r] = fmaf(l[r], rescale[r], sum);
            float* const to = my_p + r * T::RowGroups * T::PStride + 4 * column_group;
            store4(to, {s[r][0], s[r][1], s[r][2], s[r][3]});
            store4(to + Half, {s[r][4], s[r][5], s[r][6], s[r][7]});
        }
        __pipeline_wait_prior(0);
        __syncthreads();    // V is there, nobody still reads K, and the warp's P is written
        if (first_key + Keys < a.n) start_k(first_key + Keys);

        float sum[kPatch][kPatch] = {};    // P V of this step
#pragma unroll 2
        for (int y = 0; y < Keys; y += 4) {
            float4 value[4][2];
#pragma unroll
            for (int key = 0; key < 4; ++key) {
                value[key][0] = load4(v_tile + (y + key) * T::VStride + 4 * column_group);
                value[key][1] = load4(v_tile + (y + key) * T::VStride + Half + 4 * column_group);
            }
#pragma unroll
            for (int r = 0; r < kPatch; ++r) {
                const float4 weights = load4(my_p + r * T::RowGroups * T::PStride + y);
                const float p[4] = {weights.x, weights.y, weights.z, weights.w};
#pragma unroll
                for (int key = 0; key < 4; ++key) {
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        sum[r][4 * half + 0] = fmaf(p[key], value[key][half].x, sum[r][4 * half + 0]);
                        sum[r][4 * half + 1] = fmaf(p[key], value[key][half].y, sum[r][4 * half + 1]);
                        sum[r][4 * half + 2] = fmaf(p[key], value[key][half].z, sum[r][4 * half + 2]);
                        sum[r][4 * half + 3] = fmaf(p[key], value[key][half].w, sum[r][4 * half + 3]);
                    }
                }
            }
        }
#pragma unroll
        for (int r = 0; r < kPatch; ++r)
#pragma unroll
            for (int c = 0; c < kPatch; ++c) o[r][c] = fmaf(o[r][c], rescale[r], sum[r][c]);
    }

    float* const out = a.o + batch * matrix + (first_row + my_row) * D + 4 * column_group;
#pragma unroll
    for (int r = 0; r < kPatch; ++r) {
        float sum = l[r];
#pragma unroll
        for (int other = 1; other < ColumnGroups; other *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, other);
        if (column_group == 0) a.lse[batch * a.n + first_row + my_row + r] = m[r] + log2f(sum);
        const float inverse = 1.0f / sum;
#pragma unroll
        for (int half = 0; half < 2; ++half)
            store4(out + r * D + half * Half, {o[r][4 * half] * inverse, o[r][4 * half + 1] * inverse,
                                               o[r][4 * half + 2] * inverse, o[r][4 * half + 3] * inverse});
    }
}

template <int D, int Warps>
static void launch_forward_tiles(const Problem& a) {
    using T = ForwardTile<D, Warps>;
    CUDA_CHECK(cudaFuncSetAttribute(attention_forward<D, Warps>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    int(T::Bytes)));
    const unsigned blocks = unsigned(size_t(a.batches) * a.n / T::Rows);
    attention_forward<D, Warps><<<blocks, T::Threads, T::Bytes>>>(a, kLog2e / sqrtf(float(D)));
    CUDA_CHECK(cudaGetLastError());
}

static size_t most_shared_bytes() {
    int device = 0, bytes = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    return size_t(bytes);
}

template <int D>
static void launch_forward(const Problem& a) {
    constexpr int Warps = D == 32 ? 2 : 4;
    if (most_shared_bytes() >= ForwardTile<D, Warps>::Bytes)
        launch_forward_tiles<D, Warps>(a);
    else
        launch_forward_tiles<D, 1>(a);
}

// ---- backward

// D = dO . O of every row, and dQ = 0, since the next kernel adds to it. Grid: one thread for each 4 columns of a row.
template <int D>
__global__ void attention_backward_dot(Problem a) {
    constexpr int Lanes = D / 4;    // of a row: 8 or 16, so rows do not straddle warps
    const size_t index = size_t(blockIdx.x) * blockDim.x + threadIdx.x, row = index / Lanes;
    const size_t batch = row / a.n, matrix = size_t(a.n) * D;
    const float4 o = load4(a.o + 4 * index);
    const float4 grad = load4(a.input + (4 * batch + 3) * matrix + (4 * index - batch * matrix));
    float sum = dot(o, grad, 0.0f);
#pragma unroll
    for (int lane = 1; lane < Lanes; lane *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    if (index % Lanes == 0) a.dot[row] = sum;
    store4(a.dq + 4 * index, {0.0f, 0.0f, 0.0f, 0.0f});
}

__device__ __forceinline__ void atomic_add4(float* to, float4 value) {
#if __CUDA_ARCH__ >= 900
    atomicAdd(reinterpret_cast<float4*>(to), value);    // one instruction on 16 bytes, from Hopper on
#else
    atomicAdd(to, value.x);
    atomicAdd(to + 1, value.y);
    atomicAdd(to + 2, value.z);
    atomicAdd(to + 3, value.w);
#endif
}

// Grid: batches * n / T blocks, each for T keys of one batch; it walks over all rows.
template <int D, int T>
__global__ void __launch_bounds__(Shape<D, T>::Threads) attention_backward(Problem a, float scale) {
    using S = Shape<D, T>;
    constexpr int RowGroups = T / 8, KeyGroups = T / 4;    // a thread has 8 × 4 scores
    constexpr int WarpsAcross = KeyGroups / 8;             // a warp covers 4 row groups × 8 key groups
    extern __shared__ float4 shared[];
    float* const k_tile = reinterpret_cast<float*>(shared);
    float* const v_tile = k_tile + T * S::Stride;
    float* const q_tile = v_tile + T * S::Stride;
    float* const grad_tile = q_tile + T * S::Stride;
    float* const p_tile = grad_tile + T * S::Stride;
    float* const ds_tile = p_tile + T * S::ScoreStride;
    float* const lse = ds_tile + T * S::ScoreStride;
    float* const dot_tile = lse + T;

    const int tiles = a.n / T;
    const size_t batch = blockIdx.x / tiles, first_key = size_t(blockIdx.x % tiles) * T, matrix = size_t(a.n) * D;
    const float* const q = a.input + 4 * batch * matrix;
    const float* const grad = q + 3 * matrix;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    // Scores: rows r0 + i * RowGroups, keys k0 + j * KeyGroups.
    const int r0 = warp / WarpsAcross * 4 + lane / 8, k0 = warp % WarpsAcross * 8 + lane % 8;
    // dQ: rows group + i * Groups. dK and dV: keys group * Rows + i. All: 4 columns from `column` on.
    const int group = threadIdx.x / S::ColumnGroups, column = threadIdx.x % S::ColumnGroups * 4;

    load_tile<D, T>(k_tile, q + matrix + first_key * D);
    load_tile<D, T>(v_tile, q + 2 * matrix + first_key * D);
    float4 dk[S::Rows], dv[S::Rows];
#pragma unroll
    for (int i = 0; i < S::Rows; ++i) dk[i] = dv[i] = {0.0f, 0.0f, 0.0f, 0.0f};

    // Blocks of a batch start at different rows, so that they do not all add to the same dQ at the same time.
    const int start = blockIdx.x % tiles;
    for (int step = 0; step < tiles; ++step) {
        const size_t first_row = size_t(start + step < tiles ? start + step : start + step - tiles) * T;
        __syncthreads();    // nobody still reads the tiles of the step before
        load_tile<D, T>(q_tile, q + first_row * D);
        load_tile<D, T>(grad_tile, grad + first_row * D);
        for (int i = threadIdx.x; i < T; i += S::Threads) {
            lse[i] = a.lse[batch * a.n + first_row + i];
            dot_tile[i] = a.dot[batch * a.n + first_row + i];
        }
        __syncthreads();

        float s[8][4], dp[8][4];
        score_patch<D, T, 8, 4, RowGroups, KeyGroups>(s, q_tile, k_tile, r0, k0);
        score_patch<D, T, 8, 4, RowGroups, KeyGroups>(dp, grad_tile, v_tile, r0, k0);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int r = r0 + i * RowGroups;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int at = r * S::ScoreStride + k0 + j * KeyGroups;
                const float p = exp2_fast(fmaf(s[i][j], scale * kLog2e, -lse[r]));
                p_tile[at] = p;
                ds_tile[at] = p * (dp[i][j] - dot_tile[r]) * scale;
            }
        }
        __syncthreads();    // P and dS are complete

        // dV += Pᵀ dO and dK += dSᵀ Q, a row after the other.
#pragma unroll 2
        for (int r = 0; r < T; ++r) {
            const float4 grad_row = load4(grad_tile + r * S::Stride + column);
            const float4 q_row = load4(q_tile + r * S::Stride + column);
#pragma unroll
            for (int i = 0; i < S::Rows; i += 4) {
                const float4 p = load4(p_tile + r * S::ScoreStride + group * S::Rows + i);
                const float4 ds = load4(ds_tile + r * S::ScoreStride + group * S::Rows + i);
                add_scaled(dv[i + 0], p.x, grad_row), add_scaled(dv[i + 1], p.y, grad_row);
                add_scaled(dv[i + 2], p.z, grad_row), add_scaled(dv[i + 3], p.w, grad_row);
                add_scaled(dk[i + 0], ds.x, q_row), add_scaled(dk[i + 1], ds.y, q_row);
                add_scaled(dk[i + 2], ds.z, q_row), add_scaled(dk[i + 3], ds.w, q_row);
            }
        }

        // dQ += dS K, in global memory: every block of the batch adds its keys' part.
        float4 dq[S::Rows];
#pragma unroll
        for (int i = 0; i < S::Rows; ++i) dq[i] = {0.0f, 0.0f, 0.0f, 0.0f};
        rows_times_tile<D, T>(dq, ds_tile, k_tile, group, column);
#pragma unroll
        for (int i = 0; i < S::Rows; ++i)
            atomic_add4(a.dq + batch * matrix + (first_row + group + i * S::Groups) * D + column, dq[i]);
    }

#pragma unroll
    for (int i = 0; i < S::Rows; ++i) {
        const size_t at = batch * matrix + (first_key + group * S::Rows + i) * D + column;
        store4(a.dk + at, dk[i]);
        store4(a.dv + at, dv[i]);
    }
}

template <int D, int T>
static void launch_backward_tiles(const Problem& a) {
    using S = Shape<D, T>;
    const size_t rows = size_t(a.batches) * a.n;
    CUDA_CHECK(cudaFuncSetAttribute(attention_backward<D, T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    int(S::Bytes)));
    attention_backward_dot<D><<<unsigned(rows * (D / 4) / 128), 128>>>(a);
    CUDA_CHECK(cudaGetLastError());
    attention_backward<D, T><<<unsigned(rows / T), S::Threads, S::Bytes>>>(a, 1.0f / sqrtf(float(D)));
    CUDA_CHECK(cudaGetLastError());
}

template <int D>
static void launch_backward(const Problem& a) {
    if (most_shared_bytes() >= Shape<D, 64>::Bytes)
        launch_backward_tiles<D, 64>(a);
    else
        launch_backward_tiles<D, 32>(a);
}

static void launch_forward(const Problem& a) { a.d == 32 ? launch_forward<32>(a) : launch_forward<64>(a); }
static void launch_backward(const Problem& a) { a.d == 32 ? launch_backward<32>(a) : launch_backward<64>(a); }

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
    int32_t batches, n, d;
    read_exactly(in, &batches, sizeof batches, argv[1]);
    read_exactly(in, &n, sizeof n, argv[1]);
    read_exactly(in, &d, sizeof d, argv[1]);
    if (batches < 1 || n < 128 || n > 32768 || n % 128 != 0 || (d != 32 && d != 64))
        fail(argv[1], "the header's B, N or d is not legal");
    const size_t plane = size_t(batches) * n * d;    // floats in each of the eight tensors, of all batches
    std::vector<float> host(4 * plane);
    const size_t bytes = 4 * plane * sizeof(float);
    read_exactly(in, host.data(), bytes, argv[1]);
    std::fclose(in);

    float *input, *output, *lse, *dot;
    CUDA_CHECK(cudaMalloc(&input, bytes));
    CUDA_CHECK(cudaMalloc(&output, bytes));
    CUDA_CHECK(cudaMalloc(&lse, size_t(batches) * n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&dot, size_t(batches) * n * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(input, host.data(), bytes, cudaMemcpyHostToDevice));
    const Problem problem = {input, output, output + plane, output + 2 * plane, output + 3 * plane,
                             lse,   dot,    batches,        n,                  d};
    launch_forward(problem);
    launch_backward(problem);
    CUDA_CHECK(cudaMemcpy(host.data(), output, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(input));
    CUDA_CHECK(cudaFree(output));
    CUDA_CHECK(cudaFree(lse));
    CUDA_CHECK(cudaFree(dot));
    write_file(argv[2], host);
    return 0;
}
