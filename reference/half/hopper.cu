// Attention forward in half precision, step 3: Hopper's own instructions, and softmax under the feet of the products.
//
// Theory of operation
//
//   What is new. mma.cu cannot reach the tensor cores' full rate: mma.sync gets some 60 % of it on Hopper, and a warp that
//   computes exponentials starts no products. Here, as in FlashAttention-3 (Shah et al. 2024),
//
//   - wgmma multiplies 64 rows, four warps together, with operands that it fetches from shared memory by itself, and it
//     is asynchronous: the warps go on while it runs;
//   - roles are divided. One thread does nothing but start tensor copies of Q, K and V (TMA), as far ahead as there is
//     room; two or three groups of four warps compute, with 64 rows of Q each. Registers go where they are needed
//     (setmaxnreg). The copy engine takes care of all strides, and fills in zeros behind the ends of a tensor;
//   - a group starts S(next) = Q K^T and O += P(this) V together, and computes the softmax of S(next) while P V runs;
//   - ping-pong. Groups start their products in turns, so that one's softmax meets the other's products. An exponential
//     takes the special-function units as long as 64 multiply-adds of each of the two products take the tensor cores:
//     for d = 64 both have the same to do;
//   - it is persistent: one block per multiprocessor takes items (a head and 128 or 192 rows) from a counter, the
//     longest first under a causal mask, so that all end at about the same time. Heads go in sections whose K and V fit
//     in the L2 cache.
//
//   Rescaling. O and l are multiplied by 2^(m - m') when the maximum m of a row grows. After the first tiles this is
//   rare, so a warp skips the products with 1: they take as long as a fifth of the softmax (d = 128).
//
//   The ring. Tiles of K and V share the slots of one ring, in the order in which they are used: K, K, V, K, V, .., V.
//   For each slot there are two mbarriers: `full`, completed by the copy, and `empty`, by the warps that have read it.
//   Q has slots of its own, which also carry the number of the item.
//
//   The order of events. The assembler moves a wait up to the start of its basic block, past all arithmetic that does not
//   depend on it. A wait for P V right after the softmax would come before it, and the overlap would be lost, with right
//   results. The branch around the rescaling ends the block in between: look for MUFU.EX2 before WARPGROUP.DEPBAR in
//   `cuobjdump -sass`.
//
//   Precision and masks are those of mma.cu, whose kernels other GPUs get. float8 is widened to float16, too.
//
//   Gained, on an H200 (benchmarks/half.py, TFLOP/s, full | causal; in the same run next to PyTorch's cuDNN back end):
//     4 x 16 x 4096 x 64    503 | 429 (cuDNN 444 | 368)        2 x 32/8 x 8192 x 128   638 | 633 (622 | 549)
//     4 x 16 x 4096 x 128   640 | 608 (611 | 533)              4 x 16 x 4096 x 256     720 | 680 (654 | 588)
//     2 x 16 x 8192 x 128   627 | 644 (611 | 566)
//   For d = 128 the tensor cores are busy 75 % of the time, at 1.64 GHz: a busy chip lowers its clock, and rates differ
//   by a tenth between runs. For d = 64 they are busy 57 % of the time.
//
//   Tried, and less exact: letting m lag behind the maximum by up to eight powers of two, as FlashAttention-4 does. It
//   spares most of the rescaling, but half precision rounds P best when the maximum itself is 1: the root mean square
//   error was 3 % larger than that of mma.cu, cuDNN and FlashAttention-2.
//
//   Tried, and slower: rescaling always (1 to 3 %); every 8th or 4th exponential by multiply-adds (4 to 10 %, every
//   second: serialised for want of registers); two groups instead of three for d = 64 (16 %); 112 instead of 128 keys for
//   d = 128 (4 %). The same within 2 %: no turns; 144 to 176 keys for d = 128; 64 to 96 for d = 256.
//
// Build: nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a hopper.cu -o half

#define MMA_PART
#include "mma.cu"

#include "hopper_instructions.cuh"

namespace hopper {

using half_program::Header;
using half_program::Strides;
using mma::exp2_fast;
using mma::kNothing;
using mma::pack;

// How a multiprocessor works on heads of up to D columns.
template <int D_, int Groups_, int Keys_, int Slots_, int QSlots_>
struct Config {
    static constexpr int D = D_;
    static constexpr int Groups = Groups_;           // of four warps that compute, 64 rows each
    static constexpr int Rows = 64 * Groups;         // of Q per item of work
    static constexpr int Keys = Keys_;               // per tile
    static constexpr int Slots = Slots_;             // tiles of K or V in shared memory
    static constexpr int QSlots = QSlots_;           // tiles of Q
    static constexpr int Threads = 128 * (Groups + 1);
    static constexpr int Panel = D % 64 == 0 ? 64 : 32;    // columns
    static constexpr int Panels = D / Panel;
    static constexpr int SlotBytes = Keys * D * 2, QBytes = Rows * D * 2;
    static constexpr int SharedBytes = Slots * SlotBytes + QSlots * QBytes + 1024;    // 1024 to align
    static constexpr int CopyRegisters = Groups == 3 ? 32 : 24, ComputeRegisters = Groups == 3 ? 160 : 240;
    static_assert(SharedBytes <= 227 * 1024 - 512, "a multiprocessor has 227 KB for a block");
};

struct Parameters {
    int queries, keys, dim, query_heads, heads_per_key_head, heads;    // heads: of all batches
    int row_tiles, items, section;                                     // heads in a section
    int offset;                                                        // query i is at key i + offset
    int causal, window;
    float scale;    // times log2 e
    char* output;
    Strides output_strides;
    float* statistics;
    int* schedule;    // items taken beyond the first of each block, blocks that have finished
};

// Item -> (head, row tile, range of key tiles).
template <class C>
struct Work {
    int batch, head, first_row, first_tile, last_tile;    // last_tile < first_tile: nothing to see

    __device__ Work(const Parameters& p, int item) {
        const int per_section = p.section * p.row_tiles, section = item / per_section;
        const int rest = item - section * per_section;
        const int heads = min(p.section, p.heads - section * p.section);
        const int turn = rest / heads, flat_head = section * p.section + rest - turn * heads;
        batch = flat_head / p.query_heads;
        head = flat_head - batch * p.query_heads;
        first_row = (p.causal ? p.row_tiles - 1 - turn : turn) * C::Rows;
        const int last_row = min(first_row + C::Rows, p.queries) - 1;
        const int end = p.causal ? min(p.keys, last_row + p.offset + 1) : p.keys;
        const int begin = p.window >= 0 ? max(0, first_row + p.offset - p.window) : 0;
        first_tile = begin / C::Keys;
        last_tile = end > begin ? (end - 1) / C::Keys : first_tile - 1;
    }
};

template <class C>
struct Barriers {
    uint64_t full[C::Slots], empty[C::Slots], q_full[C::QSlots], q_empty[C::QSlots];
    int item[C::QSlots];
};

template <int Size>
struct Ring {
    int slot = 0, parity = 0;
    __device__ __forceinline__ void step() {
        if (++slot == Size) slot = 0, parity ^= 1;
    }
};

template <class C, class Half>
__global__ void __launch_bounds__(C::Threads, 1)
attention(const __grid_constant__ CUtensorMap q_map, const __grid_constant__ CUtensorMap k_map,
          const __grid_constant__ CUtensorMap v_map, const __grid_constant__ Parameters p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr int D = C::D, Keys = C::Keys, Groups = C::Groups, Panel = C::Panel, KeySteps = Keys / 16;
    extern __shared__ char unaligned[];
    __shared__ Barriers<C> barriers;
    char* const q_tiles = unaligned + (1024 - shared_address(unaligned) % 1024) % 1024;
    char* const ring = q_tiles + C::QSlots * C::QBytes;

    if (threadIdx.x == 0) {
        for (int i = 0; i < C::Slots; ++i) barrier_init(&barriers.full[i], 1), barrier_init(&barriers.empty[i], 4 * Groups);
        for (int i = 0; i < C::QSlots; ++i)
            barrier_init(&barriers.q_full[i], 1), barrier_init(&barriers.q_empty[i], 4 * Groups);
        barrier_init_done();
    }
    __syncthreads();

    const int group = threadIdx.x / 128 - 1;    // -1 copies, the others compute
    if (group < 0) {
        give_registers<C::CopyRegisters>();
        if (threadIdx.x == 0) {
            Ring<C::Slots> at;
            Ring<C::QSlots> q_at;
            const auto copy_tile = [&](const CUtensorMap* map, const Work<C>& work, int tile) {
                wait(&barriers.empty[at.slot], at.parity ^ 1);
                expect_bytes(&barriers.full[at.slot], C::SlotBytes);
#pragma unroll
                for (int panel = 0; panel < C::Panels; ++panel)
                    copy_box(ring + at.slot * C::SlotBytes + panel * Keys * Panel * 2, map, panel * Panel, tile * Keys,
                             work.head / p.heads_per_key_head, work.batch, &barriers.full[at.slot]);
                at.step();
            };
            for (int item = blockIdx.x; item < p.items; item = gridDim.x + atomicAdd(p.schedule, 1)) {
                const Work<C> work(p, item);
                if (work.last_tile >= work.first_tile) copy_tile(&k_map, work, work.last_tile);
                wait(&barriers.q_empty[q_at.slot], q_at.parity ^ 1);
                barriers.item[q_at.slot] = item;
                expect_bytes(&barriers.q_full[q_at.slot], C::QBytes);
#pragma unroll
                for (int panel = 0; panel < C::Panels; ++panel)
                    copy_box(q_tiles + q_at.slot * C::QBytes + panel * C::Rows * Panel * 2, &q_map, panel * Panel,
                             work.first_row, work.head, work.batch, &barriers.q_full[q_at.slot]);
                q_at.step();
                for (int tile = work.last_tile; tile >= work.first_tile; --tile) {
                    if (tile > work.first_tile) copy_tile(&k_map, work, tile - 1);
                    copy_tile(&v_map, work, tile);
                }
            }
            wait(&barriers.q_empty[q_at.slot], q_at.parity ^ 1);
            barriers.item[q_at.slot] = -1;
            arrive(&barriers.q_full[q_at.slot]);
            if (atomicAdd(p.schedule + 1, 1) == int(gridDim.x) - 1) p.schedule[0] = p.schedule[1] = 0;    // for the next launch
        }
    } else {
        take_registers<C::ComputeRegisters>();
        const int lane = threadIdx.x % 32, pair = lane % 4 * 2;
        const int my_row = group * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4;    // and 8 further on
        float s[Keys / 2], o[D / 2], m[2], l[2], rescale[2];
        uint32_t probabilities[KeySteps][4];
        Ring<C::Slots> at;
        Ring<C::QSlots> q_at;
        int k_slot = 0, v_slot = 0;

        const auto wait_for_turn = [&] {
            asm volatile("bar.sync %0, 256;" ::"r"(group + 1) : "memory");
        };
        const auto pass_turn = [&] {
            asm volatile("bar.arrive %0, 256;" ::"r"(group + 1 == Groups ? 1 : group + 2) : "memory");
        };
        const uint64_t q_base = operand<Panel>(q_tiles + group * 64 * Panel * 2, 16, 16 * Panel);
        const uint64_t k_base = operand<Panel>(ring, 16, 16 * Panel);
        const uint64_t v_base = operand<Panel>(ring, Keys * Panel * 2, 16 * Panel);

        const auto start_scores = [&] {
            k_slot = at.slot;
            wait(&barriers.full[k_slot], at.parity);
            at.step();
            const uint64_t q = q_base + q_at.slot * (C::QBytes / 16), k = k_base + k_slot * (C::SlotBytes / 16);
            pin(s);
            begin_products();
#pragma unroll
            for (int step = 0; step < D / 16; ++step) {
                constexpr int PerPanel = Panel / 16;
                const int panel = step / PerPanel, inside = step % PerPanel * 2;
                multiply<Half, 0, 0>(s, q + panel * (C::Rows * Panel / 8) + inside, k + panel * (Keys * Panel / 8) + inside,
                                     step > 0);
            }
            commit_products();
        };
        const auto start_output = [&] {
            v_slot = at.slot;
            wait(&barriers.full[v_slot], at.parity);
            at.step();
            const uint64_t v = v_base + v_slot * (C::SlotBytes / 16);
            pin(o);
            begin_products();
#pragma unroll
            for (int step = 0; step < KeySteps; ++step)
                multiply<Half, 1>(o, probabilities[step], v + step * (16 * Panel / 8), true);
            commit_products();
        };
        const auto release = [&](int slot) {
            if (lane == 0) arrive(&barriers.empty[slot]);
        };

        const auto mask = [&](int tile, int row, int first_row) {
            const int first_key = tile * Keys;
            const bool tail = first_key + Keys > p.keys;
            const bool above = p.causal && first_key + Keys - 1 > first_row + p.offset;
            const bool before = p.window >= 0 && first_key < first_row + 63 + p.offset - p.window;
            if (tail || above || before) {
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const int at_key = row + 8 * r + p.offset, column = first_key + pair;
                    const int end = (p.causal ? min(p.keys, at_key + 1) : p.keys) - column;
                    const int begin = (p.window >= 0 ? at_key - p.window : 0) - column;
#pragma unroll
                    for (int i = 2 * r; i < Keys / 2; i += 4)
#pragma unroll
                        for (int j = 0; j < 2; ++j) {
                            const int c = i / 4 * 8 + j;
                            s[i + j] = c < end && c >= begin ? s[i + j] : -INFINITY;
                        }
                }
            }
        };
        const auto softmax = [&] {
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                float top = s[2 * r], other_top = s[2 * r + 1];
#pragma unroll
                for (int i = 2 * r + 4; i < Keys / 2; i += 4) {
                    top = fmaxf(top, s[i]);
                    other_top = fmaxf(other_top, s[i + 1]);
                }
                top = fmaxf(top, other_top);
                top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
                top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2)) * p.scale;
                top = fmaxf(top, m[r]);
                rescale[r] = exp2_fast(m[r] - top);
                m[r] = top;
                float a = 0.0f, b = 0.0f;
#pragma unroll
                for (int i = 2 * r; i < Keys / 2; i += 4) {
                    s[i] = exp2_fast(fmaf(s[i], p.scale, -top));
                    s[i + 1] = exp2_fast(fmaf(s[i + 1], p.scale, -top));
                    a += s[i];
                    b += s[i + 1];
                }
                l[r] = fmaf(l[r], rescale[r], a + b);
            }
        };
        const auto round_probabilities = [&] {
#pragma unroll
            for (int step = 0; step < KeySteps; ++step)
#pragma unroll
                for (int part = 0; part < 4; ++part)
                    probabilities[step][part] = pack<Half>(s[8 * step + 2 * part], s[8 * step + 2 * part + 1]);
            pin(probabilities);
        };

        if (group == Groups - 1) pass_turn();
        for (;;) {
            wait(&barriers.q_full[q_at.slot], q_at.parity);
            const int item = barriers.item[q_at.slot];
            if (item < 0) break;
            const Work<C> work(p, item);
            const int row = work.first_row + my_row, first_row = work.first_row + group * 64;
#pragma unroll
            for (int i = 0; i < D / 2; ++i) o[i] = 0.0f;
            m[0] = m[1] = kNothing;
            l[0] = l[1] = 0.0f;

            if (work.last_tile >= work.first_tile) {
                wait_for_turn();
                start_scores();
                pass_turn();
                wait_products<0>();
                pin(s);
                release(k_slot);
                mask(work.last_tile, row, first_row);
                softmax();
                round_probabilities();
                for (int tile = work.last_tile - 1; tile >= work.first_tile; --tile) {
                    wait_for_turn();
                    start_scores();
                    start_output();
                    pass_turn();
                    wait_products<1>();
                    pin(s);
                    release(k_slot);
                    mask(tile, row, first_row);
                    softmax();
                    pin(s);
                    // The branch also keeps the assembler from moving the wait up, before the exponentials.
                    if (__any_sync(0xffffffffu, rescale[0] != 1.0f || rescale[1] != 1.0f)) {
                        wait_products<0>();
                        pin(o);
#pragma unroll
                        for (int i = 0; i < D / 2; ++i) o[i] *= rescale[i / 2 % 2];
                    }
                    wait_products<0>();
                    pin(o);
                    pin(probabilities);
                    release(v_slot);
                    round_probabilities();
                }
            }
            if (lane == 0) arrive(&barriers.q_empty[q_at.slot]);
            q_at.step();
            if (work.last_tile >= work.first_tile) {
                start_output();
                wait_products<0>();
                pin(o);
                pin(probabilities);
                release(v_slot);
            }

#pragma unroll
            for (int r = 0; r < 2; ++r) {
                float total = l[r];
                total += __shfl_xor_sync(0xffffffffu, total, 1);
                total += __shfl_xor_sync(0xffffffffu, total, 2);
                const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
                const bool inside = row + 8 * r < p.queries;
                if (p.statistics && inside && lane % 4 == 0)
                    p.statistics[size_t(work.batch * p.query_heads + work.head) * p.queries + row + 8 * r] =
                        total > 0.0f ? m[r] + log2f(total) : -INFINITY;
                char* const out = p.output + 2 * (p.output_strides.start + work.batch * p.output_strides.batch +
                                                  work.head * p.output_strides.head +
                                                  (row + 8 * r) * p.output_strides.row);
#pragma unroll
                for (int chunk = 0; chunk < D / 8; chunk += 4) {
                    uint32_t word[4];
#pragma unroll
                    for (int i = 0; i < 4; ++i)
                        word[i] = pack<Half>(o[4 * (chunk + i) + 2 * r] * inverse, o[4 * (chunk + i) + 2 * r + 1] * inverse);
                    exchange_chunks(word);
                    const int column = (chunk + lane % 4) * 8;
                    if (inside && column < p.dim)
                        *reinterpret_cast<uint4*>(out + 2 * column) = make_uint4(word[0], word[1], word[2], word[3]);
                }
            }
        }
        if (group == 0) wait_for_turn();    // the last turn is passed to somebody
    }
#endif
}

// ---------------------------------------------------------------------------------------------------- launching

constexpr size_t kScheduleBytes = 256;

inline size_t workspace_bytes(const Header& h) {
    return kScheduleBytes + (h.is_float8() ? 2 * h.input_elements() : 0);
}

// A map for boxes of `rows` rows and a panel of columns of the tensor [batches, heads, rows_in_all, dim].
template <class Half>
inline cudaError_t make_map(CUtensorMap* map, const void* base, const Strides& s, int dim, int rows_in_all, int heads,
                            int batches, int panel, int rows) {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (error != cudaSuccess) return error;
    const cuuint64_t sizes[4] = {cuuint64_t(dim), cuuint64_t(rows_in_all), cuuint64_t(heads), cuuint64_t(batches)};
    const cuuint64_t strides[3] = {2 * s.row, 2 * s.head, 2 * s.batch};
    const cuuint32_t box[4] = {cuuint32_t(panel), cuuint32_t(rows), 1, 1}, step[4] = {1, 1, 1, 1};
    const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
        map, std::is_same_v<Half, __half> ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4,
        const_cast<char*>(static_cast<const char*>(base) + 2 * s.start), sizes, strides, box, step,
        CU_TENSOR_MAP_INTERLEAVE_NONE, panel == 64 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

constexpr double kSectionBytes = 16 << 20;    // of K and V: what surely fits in half of the L2 cache

template <class C, class Half>
cudaError_t launch_as(const Header& h, const void* input, void* output, float* statistics, int* schedule,
                      cudaStream_t stream) {
    const half_program::Layout layout(h);
    CUtensorMap q_map, k_map, v_map;
    cudaError_t error = make_map<Half>(&q_map, input, layout.q, h.dim, h.queries, h.query_heads, h.batches, C::Panel, C::Rows);
    if (error == cudaSuccess)
        error = make_map<Half>(&k_map, input, layout.k, h.dim, h.keys, h.key_heads, h.batches, C::Panel, C::Keys);
    if (error == cudaSuccess)
        error = make_map<Half>(&v_map, input, layout.v, h.dim, h.keys, h.key_heads, h.batches, C::Panel, C::Keys);
    if (error != cudaSuccess) return error;

    Parameters p{};
    p.queries = h.queries, p.keys = h.keys, p.dim = h.dim;
    p.query_heads = h.query_heads, p.heads_per_key_head = h.query_heads / h.key_heads;
    p.heads = h.batches * h.query_heads;
    p.row_tiles = (h.queries + C::Rows - 1) / C::Rows;
    p.items = p.heads * p.row_tiles;
    const double head_bytes = 4.0 * h.keys * h.dim / p.heads_per_key_head;
    p.section = h.causal ? int(std::clamp(kSectionBytes / head_bytes, 1.0, double(p.heads))) : 1;
    p.offset = h.keys - h.queries;
    p.causal = h.causal;
    p.window = std::min(h.window, h.keys + h.queries);
    p.scale = h.scale * float(M_LOG2E);
    p.output = static_cast<char*>(output), p.output_strides = layout.o;
    p.statistics = statistics, p.schedule = schedule;

    int device, processors;
    if ((error = cudaGetDevice(&device)) != cudaSuccess) return error;
    if ((error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device)) != cudaSuccess) return error;
    error = cudaFuncSetAttribute(attention<C, Half>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::SharedBytes);
    if (error != cudaSuccess) return error;
    attention<C, Half><<<std::min(processors, p.items), C::Threads, C::SharedBytes, stream>>>(q_map, k_map, v_map, p);
    return cudaGetLastError();
}

template <class Half>
cudaError_t launch_type(const Header& h, const void* input, void* output, float* statistics, int* schedule,
                        cudaStream_t stream) {
#if defined(ONLY) && !defined(HOPPER_PART)
    return launch_as<Config<ONLY>, Half>(h, input, output, statistics, schedule, stream);
#else
    const auto with = [&](auto config) {
        return launch_as<decltype(config), Half>(h, input, output, statistics, schedule, stream);
    };
    if (h.dim <= 32) return with(Config<32, 3, 128, 6, 2>{});
    if (h.dim <= 64) return with(Config<64, 3, 128, 6, 2>{});
    if (h.dim <= 96) return with(Config<96, 2, 128, 4, 2>{});
    if (h.dim <= 128) return with(Config<128, 2, 128, 4, 2>{});
    if (h.dim <= 192) return with(Config<192, 2, 96, 4, 1>{});
    return with(Config<256, 2, 80, 4, 1>{});
#endif
}

inline bool is_hopper() {
    int device, major;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major == 9;
}

inline cudaError_t launch(const Header& h, const void* input, void* output, void* workspace, cudaStream_t stream) {
#ifndef HALF_LIBRARY    // a library is for benchmarks on Hopper, and takes long enough to build
    if (!is_hopper()) return mma::launch(h, input, output, workspace, stream);
#endif
    int* const schedule = static_cast<int*>(workspace);
    if (h.is_float8()) {
        __half* const wide = reinterpret_cast<__half*>(static_cast<char*>(workspace) + kScheduleBytes);
        mma::start_widening(h, input, wide, stream);
        input = wide;
    }
    if (h.type == half_program::kBfloat16)
        return launch_type<__nv_bfloat16>(h, input, output, nullptr, schedule, stream);
    return launch_type<__half>(h, input, output, nullptr, schedule, stream);
}

}    // namespace hopper

#ifndef HOPPER_PART
HALF_PROGRAM(hopper, false)
#endif
