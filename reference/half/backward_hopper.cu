// Attention backward in half precision for Hopper: two kernels, no atomic additions, products by wgmma.
//
// Theory of operation
//
//   With P and the row statistics L = log sum exp of the forward pass, and D = sum of dO ∘ O over a row,
//
//       dV = Pᵀ dO        dP = dO Vᵀ        dS = P ∘ (dP - D)        dQ = scale dS K        dK = scale dSᵀ Q
//
//   dK and dV are sums over queries, dQ is a sum over keys. One kernel that computes all three (as FlashAttention does)
//   multiplies five times per tile and has to add to dQ from many blocks at once; two kernels, one with blocks of keys
//   and one with blocks of queries, multiply seven times, because both need S and dP, but each keeps its sums in
//   registers from the first tile to the last. The two are the simpler code by far, and give the same bits every time.
//
//   key_gradients: a group of four warps owns 64 keys. K and V of these stay in shared memory, Q and dO stream by.
//       Sᵀ = K Qᵀ,  dPᵀ = V dOᵀ   (64 x Tile, both operands in shared memory)
//       dV += Pᵀ dO,  dK += dSᵀ Q  (left operand in registers: what the first products leave there)
//   query_gradients: a group owns 64 queries. Q and dO stay, K and V stream by, exactly as in the forward pass.
//       S = Q Kᵀ,  dP = dO Vᵀ,  dQ += dS K
//
//   For d > 128 the sums of dK and dV together are more than the registers of 64 keys: key_gradients then runs once for
//   dV and once for dK.
//
//   Grouped heads: a block of keys walks through the query heads of its group, one after the other.
//
//   Overlap. Products are committed in the order S, dP, dV, dK; exponentials of a tile run under the products dK of the
//   tile before, and the two groups of a block run under each other's. Copies are ahead by the slots of a ring.
//
//   Gained, on an H200 (benchmarks/half_backward.py, TFLOP/s of 10 N^2 d operations, full | causal; PyTorch's cuDNN and
//   flash back ends in the same run):
//     4 x 16 x 4096 x 64    407 | 344 (cuDNN 397 | 330, flash 239 | 204)
//     4 x 16 x 4096 x 128   443 | 384 (514 | 426, 255 | 230)
//     2 x 16 x 8192 x 128   455 | 426 (562 | 488, 276 | 252)
//     2 x 32/8 x 8192 x 128 433 | 418 (561 | 519, 285 | 260)
//
//   Tried, and slower: fewer rows at a time, in either kernel (2 to 20 %); three groups for d = 64 (20 %); 64 queries at a
//   time for d = 128, where the assembler serialises the products for want of registers (19 %).
//
//   A trap: slots of a ring become free in the order in which they were filled. key_gradients holds Q until the next
//   scores are there; with three slots it waits before that for a dO that can only go where Q lies, for ever.
//
// Build: nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a hopper.cu -o half_backward

#ifndef HALF_LIBRARY    // a library is for benchmarks on Hopper, and takes long enough to build
#define BACKWARD_MMA_PART
#include "backward_mma.cu"
#endif
#define HOPPER_PART
#include "hopper.cu"

#include "backward_statistics.cuh"

namespace hopper_backward {

using namespace hopper;
using half_backward::Workspace;

// Groups of four warps with 64 resident rows each; Tile: rows that stream by, at a time; Slots: such tiles in shared memory.
template <int D_, int Groups_, int Tile_, int Slots_, bool Dk_ = true, bool Dv_ = true>
struct Config {
    static constexpr int D = D_, Groups = Groups_, Tile = Tile_, Slots = Slots_;
    static constexpr bool Dk = Dk_, Dv = Dv_;    // which gradients key_gradients makes
    static constexpr int Rows = 64 * Groups, Threads = 128 * (Groups + 1);
    static constexpr int CopyRegisters = Groups == 3 ? 32 : 24, ComputeRegisters = Groups == 3 ? 160 : 240;
    static constexpr int Panel = D % 64 == 0 ? 64 : 32, Panels = D / Panel;
    static constexpr int ResidentBytes = Rows * D * 2, SlotBytes = Tile * D * 2, StatisticsBytes = 2 * Tile * 4;
    static constexpr int Residents = Dk ? 2 : 1;    // without dK there is no need of V
    static constexpr int SharedBytes = Residents * ResidentBytes + Slots * SlotBytes + 1024;
    static_assert(Slots >= 4 || !Dk, "see \"A trap\"");
    static_assert(SharedBytes <= 227 * 1024 - Slots * StatisticsBytes - 512, "a multiprocessor has 227 KB for a block");
};

struct Parameters {
    int queries, keys, query_heads, key_heads, dim, padded_queries;
    int offset;    // query i is at key i + offset
    int causal, window;
    float scale, log2_scale;
    const float *l, *d;    // [heads][padded_queries]: log2 sum 2^.. of a row (+inf: sees nothing), D
    char *first, *second;  // dK and dV, or dQ
    Strides first_strides, second_strides;
};

template <class C>
struct Barriers {
    uint64_t resident, full[C::Slots], empty[C::Slots];
};

template <class C>
__device__ __forceinline__ void init(Barriers<C>& barriers) {
    if (threadIdx.x == 0) {
        barrier_init(&barriers.resident, 1);
        for (int i = 0; i < C::Slots; ++i)
            barrier_init(&barriers.full[i], 1), barrier_init(&barriers.empty[i], 4 * C::Groups);
        barrier_init_done();
    }
    __syncthreads();
}

// All panels of the box at (row, head, batch).
template <class C, int Rows>
__device__ __forceinline__ void copy_panels(char* to, const CUtensorMap* map, int row, int head, int batch,
                                            uint64_t* barrier) {
#pragma unroll
    for (int panel = 0; panel < C::Panels; ++panel)
        copy_box(to + panel * Rows * C::Panel * 2, map, panel * C::Panel, row, head, batch, barrier);
}

// sums (64 x Tile) = a bᵀ, both by rows in shared memory.
template <class C, class Half>
__device__ __forceinline__ void start_scores(float (&sums)[C::Tile / 2], uint64_t a, uint64_t b) {
    pin(sums);
    begin_products();
#pragma unroll
    for (int step = 0; step < C::D / 16; ++step) {
        const int panel = step / (C::Panel / 16), inside = step % (C::Panel / 16) * 2;
        multiply<Half, 0, 0>(sums, a + panel * (C::Rows * C::Panel / 8) + inside,
                             b + panel * (C::Tile * C::Panel / 8) + inside, step > 0);
    }
    commit_products();
}

// sums (64 x D) += a b, a in registers, b by rows in shared memory.
template <class C, class Half>
__device__ __forceinline__ void start_gradient(float (&sums)[C::D / 2], uint32_t (&a)[C::Tile / 16][4], uint64_t b) {
    pin(sums);
    pin(a);
    begin_products();
#pragma unroll
    for (int step = 0; step < C::Tile / 16; ++step)
        multiply<Half, 1>(sums, a[step], b + step * (16 * C::Panel / 8), true);
    commit_products();
}

template <class Half, int Count>
__device__ __forceinline__ void round_to(uint32_t (&halves)[Count][4], const float (&x)[8 * Count]) {
#pragma unroll
    for (int step = 0; step < Count; ++step)
#pragma unroll
        for (int part = 0; part < 4; ++part)
            halves[step][part] = pack<Half>(x[8 * step + 2 * part], x[8 * step + 2 * part + 1]);
}

// Rows my_row and my_row + 8 of a gradient, times `factor`, to memory, 16 bytes a lane.
template <class C, class Half>
__device__ __forceinline__ void store(const float (&sums)[C::D / 2], char* to, const Strides& strides, int batch,
                                      int head, int my_row, int rows, int dim, float factor) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const int row = my_row + 8 * r;
        char* const out =
            to + 2 * (strides.start + batch * strides.batch + head * strides.head + row * strides.row);
#pragma unroll
        for (int chunk = 0; chunk < C::D / 8; chunk += 4) {
            uint32_t word[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                word[i] = pack<Half>(sums[4 * (chunk + i) + 2 * r] * factor, sums[4 * (chunk + i) + 2 * r + 1] * factor);
            exchange_chunks(word);
            const int column = (chunk + lane % 4) * 8;
            if (row < rows && column < dim)
                *reinterpret_cast<uint4*>(out + 2 * column) = make_uint4(word[0], word[1], word[2], word[3]);
        }
    }
}

// ------------------------------------------------------------------------------------------------- dK and dV

template <class C, class Half>
__global__ void __launch_bounds__(C::Threads, 1)
key_gradients(const __grid_constant__ CUtensorMap k_map, const __grid_constant__ CUtensorMap v_map,
              const __grid_constant__ CUtensorMap q_map, const __grid_constant__ CUtensorMap g_map,
              const __grid_constant__ Parameters p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr int D = C::D, Rows = C::Rows, Tile = C::Tile, Panel = C::Panel;
    extern __shared__ char unaligned[];
    __shared__ Barriers<C> barriers;
    __shared__ __align__(16) float statistics[C::Slots][Tile];
    char* const residents = unaligned + (1024 - shared_address(unaligned) % 1024) % 1024;
    char* const ring = residents + C::Residents * C::ResidentBytes;
    init(barriers);

    // Blocks start in the order of their numbers. The tiles of a head are neighbours, so that they find Q and dO in the
    // L2 cache; the first keys, which the most queries see under a causal mask, come first.
    const int tiles = (p.keys + Rows - 1) / Rows, flat_head = blockIdx.x / tiles;
    const int head = flat_head % p.key_heads, batch = flat_head / p.key_heads;
    const int heads = p.query_heads / p.key_heads, first_key = blockIdx.x % tiles * Rows;
    // Queries that any of these keys is seen by.
    const int last_key = min(first_key + Rows, p.keys) - 1;
    const int begin = p.causal ? max(0, first_key - p.offset) : 0;
    const int end = p.window >= 0 ? min(p.queries, last_key - p.offset + p.window + 1) : p.queries;
    const int first_tile = begin / Tile, tiles_end = max(first_tile, (end + Tile - 1) / Tile);

    const int group = threadIdx.x / 128 - 1;
    if (group < 0) {
        give_registers<C::CopyRegisters>();
        if (threadIdx.x == 0) {
            expect_bytes(&barriers.resident, C::Residents * C::ResidentBytes);
            copy_panels<C, Rows>(residents, &k_map, first_key, head, batch, &barriers.resident);
            if constexpr (C::Dk)
                copy_panels<C, Rows>(residents + C::ResidentBytes, &v_map, first_key, head, batch, &barriers.resident);
            Ring<C::Slots> at;
            const auto copy_tile = [&](const CUtensorMap* map, const float* rows, int query_head, int tile) {
                uint64_t* const full = &barriers.full[at.slot];
                wait(&barriers.empty[at.slot], at.parity ^ 1);
                expect_bytes(full, C::SlotBytes + Tile * 4);
                copy_panels<C, Tile>(ring + at.slot * C::SlotBytes, map, tile * Tile, query_head, batch, full);
                copy_bytes(statistics[at.slot],
                           rows + size_t(batch * p.query_heads + query_head) * p.padded_queries + tile * Tile, Tile * 4,
                           full);
                at.step();
            };
            for (int member = 0; member < heads; ++member)
                for (int tile = first_tile; tile < tiles_end; ++tile) {
                    copy_tile(&q_map, p.l, head * heads + member, tile);
                    copy_tile(&g_map, p.d, head * heads + member, tile);
                }
        }
        return;
    }
    take_registers<C::ComputeRegisters>();
    const int lane = threadIdx.x % 32, pair = lane % 4 * 2;
    const int my_key = first_key + group * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4;    // and 8 further on
    float s[Tile / 2], dp[C::Dk ? Tile / 2 : 1], dk[C::Dk ? D / 2 : 1], dv[C::Dv ? D / 2 : 1];
    uint32_t p_halves[Tile / 16][4], ds_halves[Tile / 16][4];
    Ring<C::Slots> at;
    const uint64_t k_operand = operand<Panel>(residents + group * 64 * Panel * 2, 16, 16 * Panel);
    const uint64_t v_operand = k_operand + C::ResidentBytes / 16;
    const uint64_t by_rows = operand<Panel>(ring, 16, 16 * Panel);
    const uint64_t by_columns = operand<Panel>(ring, Tile * Panel * 2, 16 * Panel);
    const auto release = [&](int slot) {
        if (lane == 0) arrive(&barriers.empty[slot]);
    };
    #pragma unroll
    for (float& x : dk) x = 0.0f;
#pragma unroll
    for (float& x : dv) x = 0.0f;

    wait(&barriers.resident, 0);
    int q_slot = 0, g_slot = 0;
    bool first = true;
    for (int member = 0; member < heads; ++member)
        for (int tile = first_tile; tile < tiles_end; ++tile) {
            const int old_q_slot = q_slot, old_g_slot = g_slot;
            q_slot = at.slot;
            wait(&barriers.full[q_slot], at.parity);
            at.step();
            start_scores<C, Half>(s, k_operand, by_rows + q_slot * (C::SlotBytes / 16));
            g_slot = at.slot;
            wait(&barriers.full[g_slot], at.parity);
            at.step();
            if constexpr (C::Dk) {
                start_scores<C, Half>(dp, v_operand, by_rows + g_slot * (C::SlotBytes / 16));
                wait_products<1>();
                pin(dk);
                pin(ds_halves);
            } else {
                wait_products<0>();
            }
            if constexpr (C::Dv) pin(dv);
            pin(p_halves);
            pin(s);
            if (C::Dk && !first) release(old_q_slot);
            if (C::Dv && !first) release(old_g_slot);
            first = false;

            // Column c of Sᵀ is query tile * Tile + c.
            const float* const l = statistics[q_slot] + pair;
#pragma unroll
            for (int i = 0; i < Tile / 2; i += 4) {
                const float2 both = *reinterpret_cast<const float2*>(l + i * 2);
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    s[i + j] = exp2_fast(fmaf(s[i + j], p.log2_scale, -(j % 2 ? both.y : both.x)));
            }
            const int first_query = tile * Tile;
            if ((p.causal && first_key + group * 64 + 63 > first_query + p.offset) ||
                (p.window >= 0 && first_key + group * 64 < first_query + Tile - 1 + p.offset - p.window)) {
#pragma unroll
                for (int i = 0; i < Tile / 2; ++i) {
                    const int at_key = first_query + i / 4 * 8 + pair + i % 2 + p.offset, key = my_key + i / 2 % 2 * 8;
                    const bool hidden = (p.causal && key > at_key) || (p.window >= 0 && key < at_key - p.window);
                    if (hidden) s[i] = 0.0f;
                }
            }
            if constexpr (C::Dv) {
                round_to<Half>(p_halves, s);
                start_gradient<C, Half>(dv, p_halves, by_columns + g_slot * (C::SlotBytes / 16));
                if (!C::Dk) release(q_slot);
            }
            if constexpr (C::Dk) {
                if constexpr (C::Dv)
                    wait_products<1>();
                else
                    wait_products<0>();
                pin(dp);
                const float* const d = statistics[g_slot] + pair;
#pragma unroll
                for (int i = 0; i < Tile / 2; i += 4) {
                    const float2 both = *reinterpret_cast<const float2*>(d + i * 2);
#pragma unroll
                    for (int j = 0; j < 4; ++j) dp[i + j] = s[i + j] * (dp[i + j] - (j % 2 ? both.y : both.x));
                }
                round_to<Half>(ds_halves, dp);
                start_gradient<C, Half>(dk, ds_halves, by_columns + q_slot * (C::SlotBytes / 16));
                if (!C::Dv) release(g_slot);
            }
#ifdef SERIAL
            wait_products<0>();
            pin(dk);
            pin(dv);
            pin(ds_halves);
            pin(p_halves);
#endif
        }
    wait_products<0>();
    if constexpr (C::Dk) {
        pin(dk);
        store<C, Half>(dk, p.first, p.first_strides, batch, head, my_key, p.keys, p.dim, p.scale);
    }
    if constexpr (C::Dv) {
        pin(dv);
        store<C, Half>(dv, p.second, p.second_strides, batch, head, my_key, p.keys, p.dim, 1.0f);
    }
#endif
}

// ------------------------------------------------------------------------------------------------------- dQ

template <class C, class Half>
__global__ void __launch_bounds__(C::Threads, 1)
query_gradients(const __grid_constant__ CUtensorMap q_map, const __grid_constant__ CUtensorMap g_map,
                const __grid_constant__ CUtensorMap k_map, const __grid_constant__ CUtensorMap v_map,
                const __grid_constant__ Parameters p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr int D = C::D, Rows = C::Rows, Keys = C::Tile, Panel = C::Panel;
    extern __shared__ char unaligned[];
    __shared__ Barriers<C> barriers;
    char* const residents = unaligned + (1024 - shared_address(unaligned) % 1024) % 1024;
    char* const ring = residents + 2 * C::ResidentBytes;
    init(barriers);

    const int tiles = (p.queries + Rows - 1) / Rows, flat_head = blockIdx.x / tiles, turn = blockIdx.x % tiles;
    const int head = flat_head % p.query_heads, batch = flat_head / p.query_heads;
    const int first_row = (p.causal ? tiles - 1 - turn : turn) * Rows;    // the longest first
    const int last_row = min(first_row + Rows, p.queries) - 1;
    const int end = p.causal ? min(p.keys, last_row + p.offset + 1) : p.keys;
    const int begin = p.window >= 0 ? max(0, first_row + p.offset - p.window) : 0;
    const int first_tile = begin / Keys, tiles_end = end > begin ? (end + Keys - 1) / Keys : first_tile;

    const int group = threadIdx.x / 128 - 1;
    if (group < 0) {
        give_registers<C::CopyRegisters>();
        if (threadIdx.x == 0) {
            expect_bytes(&barriers.resident, 2 * C::ResidentBytes);
            copy_panels<C, Rows>(residents, &q_map, first_row, head, batch, &barriers.resident);
            copy_panels<C, Rows>(residents + C::ResidentBytes, &g_map, first_row, head, batch, &barriers.resident);
            Ring<C::Slots> at;
            const auto copy_tile = [&](const CUtensorMap* map, int tile) {
                wait(&barriers.empty[at.slot], at.parity ^ 1);
                expect_bytes(&barriers.full[at.slot], C::SlotBytes);
                copy_panels<C, Keys>(ring + at.slot * C::SlotBytes, map, tile * Keys,
                                     head / (p.query_heads / p.key_heads), batch, &barriers.full[at.slot]);
                at.step();
            };
            for (int tile = tiles_end - 1; tile >= first_tile; --tile) copy_tile(&k_map, tile), copy_tile(&v_map, tile);
        }
        return;
    }
    take_registers<C::ComputeRegisters>();
    const int lane = threadIdx.x % 32, pair = lane % 4 * 2;
    const int my_row = first_row + group * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4;    // and 8 further on
    float s[Keys / 2], dp[Keys / 2], dq[D / 2] = {};
    uint32_t ds_halves[Keys / 16][4];
    Ring<C::Slots> at;
    const uint64_t q_operand = operand<Panel>(residents + group * 64 * Panel * 2, 16, 16 * Panel);
    const uint64_t g_operand = q_operand + C::ResidentBytes / 16;
    const uint64_t by_rows = operand<Panel>(ring, 16, 16 * Panel);
    const uint64_t by_columns = operand<Panel>(ring, Keys * Panel * 2, 16 * Panel);
    const auto release = [&](int slot) {
        if (lane == 0) arrive(&barriers.empty[slot]);
    };
    float l[2], d[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {    // the statistics are padded: my_row is inside
        const size_t row = size_t(batch * p.query_heads + head) * p.padded_queries + my_row + 8 * r;
        l[r] = p.l[row], d[r] = p.d[row];
    }

    wait(&barriers.resident, 0);
    int k_slot = 0;
    for (int tile = tiles_end - 1; tile >= first_tile; --tile) {
        const int old_k_slot = k_slot, first_key = tile * Keys;
        k_slot = at.slot;
        wait(&barriers.full[k_slot], at.parity);
        at.step();
        start_scores<C, Half>(s, q_operand, by_rows + k_slot * (C::SlotBytes / 16));
        const int v_slot = at.slot;
        wait(&barriers.full[v_slot], at.parity);
        at.step();
        start_scores<C, Half>(dp, g_operand, by_rows + v_slot * (C::SlotBytes / 16));
        wait_products<1>();
        pin(s);
        pin(dq);
        pin(ds_halves);
        if (tile < tiles_end - 1) release(old_k_slot);
#pragma unroll
        for (int i = 0; i < Keys / 2; ++i) s[i] = exp2_fast(fmaf(s[i], p.log2_scale, -l[i / 2 % 2]));
        const int group_row = first_row + group * 64;
        if (first_key + Keys > p.keys || (p.causal && first_key + Keys - 1 > group_row + p.offset) ||
            (p.window >= 0 && first_key < group_row + 63 + p.offset - p.window)) {
#pragma unroll
            for (int i = 0; i < Keys / 2; ++i) {
                const int key = first_key + i / 4 * 8 + pair + i % 2, at_key = my_row + i / 2 % 2 * 8 + p.offset;
                const bool hidden =
                    key >= p.keys || (p.causal && key > at_key) || (p.window >= 0 && key < at_key - p.window);
                if (hidden) s[i] = 0.0f;
            }
        }
        pin(s);
        wait_products<0>();
        pin(dp);
        release(v_slot);
#pragma unroll
        for (int i = 0; i < Keys / 2; ++i) dp[i] = s[i] * (dp[i] - d[i / 2 % 2]);
        round_to<Half>(ds_halves, dp);
        start_gradient<C, Half>(dq, ds_halves, by_columns + k_slot * (C::SlotBytes / 16));
    }
    wait_products<0>();
    pin(dq);
    store<C, Half>(dq, p.first, p.first_strides, batch, head, my_row, p.queries, p.dim, p.scale);
#endif
}

// ------------------------------------------------------------------------------------------------- launching

template <class C, class Half>
struct Maps {
    CUtensorMap q, k, v, g;    // g: dO
    cudaError_t error;
    Maps(const Header& h, const half_program::Layout& layout, const void* input, int query_rows, int key_rows) {
        const char* const gradient = static_cast<const char*>(input) + 2 * h.input_elements();
        error = make_map<Half>(&q, input, layout.q, h.dim, h.queries, h.query_heads, h.batches, C::Panel, query_rows);
        if (error == cudaSuccess)
            error = make_map<Half>(&g, gradient, layout.o, h.dim, h.queries, h.query_heads, h.batches, C::Panel, query_rows);
        if (error == cudaSuccess)
            error = make_map<Half>(&k, input, layout.k, h.dim, h.keys, h.key_heads, h.batches, C::Panel, key_rows);
        if (error == cudaSuccess)
            error = make_map<Half>(&v, input, layout.v, h.dim, h.keys, h.key_heads, h.batches, C::Panel, key_rows);
    }
};

template <class C, class Half>
cudaError_t launch_keys(const Header& h, const half_program::Layout& layout, const void* input, const Parameters& p,
                        cudaStream_t stream) {
    const Maps<C, Half> maps(h, layout, input, C::Tile, C::Rows);
    if (maps.error != cudaSuccess) return maps.error;
    const cudaError_t error =
        cudaFuncSetAttribute(key_gradients<C, Half>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::SharedBytes);
    if (error != cudaSuccess) return error;
    const int grid = h.batches * h.key_heads * ((h.keys + C::Rows - 1) / C::Rows);
    key_gradients<C, Half><<<grid, C::Threads, C::SharedBytes, stream>>>(maps.k, maps.v, maps.q, maps.g, p);
    return cudaGetLastError();
}

template <class C, class Half>
cudaError_t launch_queries(const Header& h, const half_program::Layout& layout, const void* input, const Parameters& p,
                           cudaStream_t stream) {
    const Maps<C, Half> maps(h, layout, input, C::Rows, C::Tile);
    if (maps.error != cudaSuccess) return maps.error;
    const cudaError_t error =
        cudaFuncSetAttribute(query_gradients<C, Half>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::SharedBytes);
    if (error != cudaSuccess) return error;
    const int grid = h.batches * h.query_heads * ((h.queries + C::Rows - 1) / C::Rows);
    query_gradients<C, Half><<<grid, C::Threads, C::SharedBytes, stream>>>(maps.q, maps.g, maps.k, maps.v, p);
    return cudaGetLastError();
}

template <class Half, class Keys, class MoreKeys, class Queries>
cudaError_t launch_configs(const Header& h, const half_program::Layout& layout, const void* input, Parameters p,
                           const Strides& dq, const Strides& dk, const Strides& dv, cudaStream_t stream) {
    p.first_strides = dk, p.second_strides = dv;
    cudaError_t error = launch_keys<Keys, Half>(h, layout, input, p, stream);
    if constexpr (!std::is_same_v<Keys, MoreKeys>)
        if (error == cudaSuccess) error = launch_keys<MoreKeys, Half>(h, layout, input, p, stream);
    p.first_strides = dq;
    return error == cudaSuccess ? launch_queries<Queries, Half>(h, layout, input, p, stream) : error;
}

// Gradients alone, after a forward pass that left O in `output` and its statistics in the workspace.
template <class Half>
cudaError_t launch_gradients(const Header& h, const void* input, void* output, const Workspace& w, cudaStream_t stream) {
    const half_program::Layout layout(h);
    Parameters p{};
    p.queries = h.queries, p.keys = h.keys, p.query_heads = h.query_heads, p.key_heads = h.key_heads, p.dim = h.dim;
    p.padded_queries = int(Workspace::padded_queries(h));
    p.offset = h.keys - h.queries, p.causal = h.causal, p.window = std::min(h.window, h.queries + h.keys);
    p.scale = h.scale, p.log2_scale = h.scale * float(M_LOG2E);
    p.l = w.l, p.d = w.d;
    p.first = p.second = static_cast<char*>(output) + 2 * h.query_elements();    // after O

    half_backward::start_preparing<Half>(h, layout, input, output, w, stream);
    const auto with = [&](auto keys, auto more_keys, auto queries) {
        return launch_configs<Half, decltype(keys), decltype(more_keys), decltype(queries)>(
            h, layout, input, p, layout.q, layout.k, layout.v, stream);
    };
    const auto once = [&](auto keys, auto queries) { return with(keys, keys, queries); };
#ifdef ONLY
    return ONLY;
#else
    if (h.dim <= 32) return once(Config<32, 2, 96, 6>{}, Config<32, 2, 128, 6>{});
    if (h.dim <= 64) return once(Config<64, 2, 96, 6>{}, Config<64, 2, 128, 6>{});
    if (h.dim <= 96) return once(Config<96, 2, 64, 6>{}, Config<96, 2, 96, 5>{});
    if (h.dim <= 128) return once(Config<128, 2, 48, 6>{}, Config<128, 2, 96, 5>{});
    if (h.dim <= 192)
        return with(Config<192, 2, 64, 4, true, false>{}, Config<192, 2, 64, 4, false, true>{}, Config<192, 2, 64, 4>{});
    return with(Config<256, 2, 48, 4, true, false>{}, Config<256, 2, 80, 3, false, true>{}, Config<256, 2, 48, 4>{});
#endif
}

template <class Half>
cudaError_t launch_type(const Header& h, const void* input, void* output, void* workspace, cudaStream_t stream) {
    const Workspace w(h, workspace);
    const cudaError_t error = hopper::launch_type<Half>(h, input, output, w.forward, w.schedule, stream);
    return error == cudaSuccess ? launch_gradients<Half>(h, input, output, w, stream) : error;
}

inline size_t workspace_bytes(const Header& h) { return Workspace(h, nullptr).bytes; }

inline cudaError_t launch(const Header& h, const void* input, void* output, void* workspace, cudaStream_t stream) {
#ifndef HALF_LIBRARY
    if (!is_hopper()) return mma_backward::launch(h, input, output, workspace, stream);
#endif
    if (h.type == half_program::kBfloat16) return launch_type<__nv_bfloat16>(h, input, output, workspace, stream);
    return launch_type<__half>(h, input, output, workspace, stream);
}

}    // namespace hopper_backward

#ifdef HALF_LIBRARY
extern "C" int half_gradients(const half_program::Header* header, const void* input, void* output, void* workspace,
                              cudaStream_t stream) {
    const hopper_backward::Workspace w(*header, workspace);
    if (header->type == half_program::kBfloat16)
        return int(hopper_backward::launch_gradients<__nv_bfloat16>(*header, input, output, w, stream));
    return int(hopper_backward::launch_gradients<__half>(*header, input, output, w, stream));
}
#endif

HALF_PROGRAM(hopper_backward, true)
