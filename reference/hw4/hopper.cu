// Attention forward, step 3 of the fast ones: the same arithmetic with Hopper's own instructions.
//
// Theory of operation
//
//   What is new. tensor_cores.cu cannot reach the tensor cores' full rate: mma.sync gets about 60 % of it on Hopper,
//   and a warp that waits for its exponentials issues no products. Here
//
//   - wgmma multiplies 64 rows, four warps together, with operands it fetches from shared memory by itself;
//   - it is asynchronous: the warps go on while it runs;
//   - roles are divided. Of 12 warps, 8 compute, in two groups of four with 64 rows each; one thread of the other
//     four does nothing but start copies of K and V (cp.async.bulk), four tiles ahead if there is room. Registers go
//     where they are needed: 24 for those who copy, 240 for those who compute (setmaxnreg);
//   - ping-pong. A group starts S(next) = Q Kᵀ and O(this) += P V together, hands the turn to the other group, and
//     computes the exponentials of S(next) while its own P V still runs and the other group's products follow. The
//     tensor cores and the units for exponentials are both busy, which is the point: for d = 32 they have nearly
//     equally much to do;
//   - it is persistent: one block per multiprocessor walks over the row tiles, so that K and V of the next row tile
//     are on their way while this one ends.
//
//   Split halves, accuracy and range are as in tensor_cores.cu, and so is the kernel that splits K and V. Its layout
//   of 8 x 8 blocks of 128 adjacent bytes is one that wgmma reads as well ("no swizzle"), for K by rows and for V by
//   columns, and since a tile is one contiguous piece of memory, one bulk copy fetches all of K or V of a tile, with
//   no tensor map.
//
//   For d = 32, V's low halves follow its high ones in that layout as if V had 64 columns. One wgmma multiplies P
//   high with both: 64 columns keep the tensor cores busy, 32 would not.
//
//   Who waits for whom. For each of the stages of the ring of tiles there are four mbarriers: K full, K empty, V
//   full, V empty. The copying thread waits for "empty" and the copy itself completes "full"; the computing warps do
//   the reverse. K and V have separate ones because K is free half a tile earlier. The turn is passed with the named
//   barriers 1 and 2.
//
//   Gained over tensor_cores.cu, on an H200 (median of 20): t23 1.91 -> 1.24 ms, t24 3.35 -> 2.02 ms, t30 4.02 ->
//   2.38 ms, same error. On d = 64 the tensor cores are busy 80 % of the time, and the chip lowers its clock from
//   1.98 to 1.65 GHz to stay within its power.
//
//   Tried, and slower: no ping-pong (t23 + 3 %, t24 + 9 %); passing the turn at any later point (+ 1 to 7 %); tiles
//   of 64 keys instead of 128 for d = 32 (+ 14 %), of 128 instead of 64 for d = 64, where registers spill (+ 14 %);
//   three groups of 64 rows without overlap inside a group (the same on t23, + 7 % on t17).
//
//   Cost. Code for one architecture only (sm_90a), which needs the older kernel beside it; and a program in which the
//   order of events is no longer the order of lines. The rules are easy to break unnoticed: products of different
//   shapes that add to the same registers have no guaranteed order (PTX manual, wgmma.fence). And the compiler errs
//   too: in a variant of this loop without overlap (d = 32, 64 keys) the assembler of CUDA 13.0 put P into the
//   registers of Q's low halves, which the next tile still needed. Whoever changes this file runs
//   tests/gpu/test_models.py.
//
//   Other GPUs, and rows too short to fill this pipeline (n < 512, where memory is the limit anyway), get
//   tensor_cores.cu's kernel. So does the grader's emulator, except with --arch sm_90a.
//
// Build: nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a hopper.cu -o hw4

#define ATTENTION_PART
#include "tensor_cores.cu"
#undef ATTENTION_PART

namespace hopper {

using tensor_cores::exp2_fast;
using tensor_cores::split;
using tensor_cores::split_positive;
using tensor_cores::SplitPair;
using tensor_cores::SplitTile;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HAS_WGMMA 1
#endif

// ------------------------------------------------------------------------------------- Hopper's instructions
#ifdef HAS_WGMMA

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
    return uint32_t(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void barrier_init(uint64_t* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void barrier_arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ __forceinline__ void barrier_wait(uint64_t* barrier, int parity) {
    asm volatile(
        "{.reg .pred done;\n"
        "again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
        "@!done bra again;}" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}

// One contiguous piece of global memory to shared memory; `barrier` learns of the bytes as they arrive.
__device__ __forceinline__ void bulk_copy(void* to, const void* from, int bytes, uint64_t* barrier) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

// How wgmma finds an operand in shared memory that consists of 8 x 8 blocks of 128 adjacent bytes: the distance
// from block to block in either direction.
__device__ __forceinline__ uint64_t operand(const void* start, int leading_bytes, int stride_bytes) {
    return uint64_t((shared_address(start) & 0x3ffff) >> 4) | uint64_t(leading_bytes >> 4) << 16 |
           uint64_t(stride_bytes >> 4) << 32;
}

#define SUMS4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS16(d, i) SUMS4(d, i), SUMS4(d, i + 4), SUMS4(d, i + 8), SUMS4(d, i + 12)

template <int TransposeB>
__device__ __forceinline__ void wgmma(float (&d)[16], const uint32_t (&a)[4], uint64_t b, bool accumulate) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %21, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
        "}, {%16, %17, %18, %19}, %20, p, 1, 1, %22;}"
        : SUMS16(d, 0)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int(accumulate)), "n"(TransposeB));
}

template <int TransposeB>
__device__ __forceinline__ void wgmma(float (&d)[32], const uint32_t (&a)[4], uint64_t b, bool accumulate) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
        "}, {%32, %33, %34, %35}, %36, p, 1, 1, %38;}"
        : SUMS16(d, 0), SUMS16(d, 16)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int(accumulate)), "n"(TransposeB));
}

template <int TransposeB>
__device__ __forceinline__ void wgmma(float (&d)[64], const uint32_t (&a)[4], uint64_t b, bool accumulate) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, {%64, %65, %66, %67}, %68, p, 1, 1, %70;}"
        : SUMS16(d, 0), SUMS16(d, 16), SUMS16(d, 32), SUMS16(d, 48)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int(accumulate)), "n"(TransposeB));
}


__device__ __forceinline__ void wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int Pending>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// Nothing that uses these registers may be moved across this point by the compiler. Needed on both sides of a product:
// operands must have their values before wgmma_begin, and sums must not be read before wgmma_wait.
template <int Count>
__device__ __forceinline__ void pin(float (&registers)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(registers[i])::"memory");
}

template <int Count>
__device__ __forceinline__ void pin(uint32_t (&registers)[Count][4]) {
#pragma unroll
    for (int i = 0; i < Count; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) asm volatile("" : "+r"(registers[i][j])::"memory");
}

#endif    // HAS_WGMMA

// ------------------------------------------------------------------------------------------------- attention

constexpr int kConsumers = 2, kRows = 64 * kConsumers, kThreads = 128 * (1 + kConsumers);

template <int D>
struct Config {
    static constexpr int Keys = D == 32 ? 128 : 64;    // per tile: as many as the registers of S and P allow
    static constexpr int Stages = 4;                   // tiles in shared memory
    using Tile = SplitTile<D, Keys>;
    static constexpr int SharedBytes = Stages * Tile::Bytes;
};

template <int Stages>
struct Barriers {
    uint64_t k_full[Stages], v_full[Stages], k_empty[Stages], v_empty[Stages];
};

template <int D>
__global__ void __launch_bounds__(kThreads, 1)
attention(const float* __restrict__ input, const __half* __restrict__ tiles, float* __restrict__ output, int n,
          int items, float scale) {
#ifdef HAS_WGMMA
    using C = Config<D>;
    using T = typename C::Tile;
    constexpr int Keys = C::Keys, Stages = C::Stages, Steps = D / 16, KeySteps = Keys / 16;
    extern __shared__ __align__(128) __half shared[];
    __shared__ Barriers<Stages> barriers;

    if (threadIdx.x == 0) {
        for (int i = 0; i < Stages; ++i) {
            barrier_init(&barriers.k_full[i], 1);
            barrier_init(&barriers.v_full[i], 1);
            barrier_init(&barriers.k_empty[i], 4 * kConsumers);
            barrier_init(&barriers.v_empty[i], 4 * kConsumers);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    const int row_tiles = n / kRows, key_tiles = n / Keys;
    const int group = threadIdx.x / 128;    // of 4 warps: 0 copies, 1 and 2 compute

    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 0) {
            int stage = 0, parity = 1;
            for (int item = blockIdx.x; item < items; item += gridDim.x) {
                const __half* from = tiles + size_t(item / row_tiles) * key_tiles * 2 * T::Halves;
                for (int tile = 0; tile < key_tiles; ++tile, from += 2 * T::Halves) {
                    __half* const to = shared + stage * 2 * T::Halves;
                    barrier_wait(&barriers.k_empty[stage], parity);
                    bulk_copy(to, from, T::Halves * 2, &barriers.k_full[stage]);
                    barrier_wait(&barriers.v_empty[stage], parity);
                    bulk_copy(to + T::Halves, from + T::Halves, T::Halves * 2, &barriers.v_full[stage]);
                    if (++stage == Stages) stage = 0, parity ^= 1;
                }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        const int lane = threadIdx.x % 32, pair = lane % 4 * 2;
        const int my_row = (group - 1) * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4;    // and 8 further on

        float s[Keys / 2], sum[32], low_sum[16], o[D / 2];    // for d = 32, sum is of two products side by side
        uint32_t q_high[Steps][4], q_low[Steps][4], p_high[KeySteps][4], p_low[KeySteps][4];
        float m[2], l[2], rescale[2];
        int k_stage = 0, k_parity = 0, v_stage = 0, v_parity = 0;

        const auto start_scores = [&] {
            barrier_wait(&barriers.k_full[k_stage], k_parity);
            const __half* const k = shared + k_stage * 2 * T::Halves;
            const uint64_t high = operand(k, Keys * 16, 128), low = operand(k + T::Part, Keys * 16, 128);
            pin(s);
            wgmma_begin();
#pragma unroll
            for (int step = 0; step < Steps; ++step) wgmma<0>(s, q_high[step], low + step * 2 * Keys, step > 0);
#pragma unroll
            for (int step = 0; step < Steps; ++step) wgmma<0>(s, q_low[step], high + step * 2 * Keys, true);
#pragma unroll
            for (int step = 0; step < Steps; ++step) wgmma<0>(s, q_high[step], high + step * 2 * Keys, true);
            wgmma_commit();
        };
        const auto release_k = [&] {
            if (lane == 0) barrier_arrive(&barriers.k_empty[k_stage]);
            if (++k_stage == Stages) k_stage = 0, k_parity ^= 1;
        };
        const auto start_output = [&] {
            barrier_wait(&barriers.v_full[v_stage], v_parity);
            const __half* const v = shared + v_stage * 2 * T::Halves + T::Halves;
            const uint64_t high = operand(v, 128, Keys * 16), low = operand(v + T::Part, 128, Keys * 16);
            if constexpr (D == 32) {
                // Two sums: the order of products of different shapes that share a sum is not guaranteed.
                pin(sum);
                pin(low_sum);
                wgmma_begin();
#pragma unroll
                for (int keys = 0; keys < KeySteps; ++keys) wgmma<1>(low_sum, p_low[keys], high + keys * 16, keys > 0);
#pragma unroll
                for (int keys = 0; keys < KeySteps; ++keys) wgmma<1>(sum, p_high[keys], high + keys * 16, keys > 0);
            } else {
                pin(sum);
                wgmma_begin();
#pragma unroll
                for (int keys = 0; keys < KeySteps; ++keys) wgmma<1>(sum, p_high[keys], low + keys * 16, keys > 0);
#pragma unroll
                for (int keys = 0; keys < KeySteps; ++keys) wgmma<1>(sum, p_low[keys], high + keys * 16, true);
#pragma unroll
                for (int keys = 0; keys < KeySteps; ++keys) wgmma<1>(sum, p_high[keys], high + keys * 16, true);
            }
            wgmma_commit();
        };
        // After the wait for a product P V: O' = 2^(m - m') O + P V.
        const auto finish_output = [&] {
            pin(sum);
            if constexpr (D == 32) pin(low_sum);
            pin(p_high);
            pin(p_low);
            if (lane == 0) barrier_arrive(&barriers.v_empty[v_stage]);
            if (++v_stage == Stages) v_stage = 0, v_parity ^= 1;
#pragma unroll
            for (int i = 0; i < D / 2; ++i) {
                float product = sum[i];
                if constexpr (D == 32) product += sum[i + 16] + low_sum[i];
                o[i] = fmaf(o[i], rescale[i / 2 % 2], product);
            }
        };
        // m' = max(m, scale max s),  P = 2^(scale s - m'),  l' = 2^(m - m') l + sum P, for rows my_row and + 8.
        float next_rescale[2];
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
                top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
                top = fmaxf(m[r], fmaf(top, scale, -tensor_cores::kHeadroom));
                next_rescale[r] = exp2_fast(m[r] - top);
                m[r] = top;
                float a = 0.0f, b = 0.0f;
#pragma unroll
                for (int i = 2 * r; i < Keys / 2; i += 4) {
                    s[i] = exp2_fast(fmaf(s[i], scale, -top));
                    s[i + 1] = exp2_fast(fmaf(s[i + 1], scale, -top));
                    a += s[i];
                    b += s[i + 1];
                }
                l[r] = fmaf(l[r], next_rescale[r], a + b);
            }
        };
        const auto split_probabilities = [&] {
#pragma unroll
            for (int keys = 0; keys < KeySteps; ++keys)
#pragma unroll
                for (int part = 0; part < 4; ++part) {
                    const SplitPair both = split_positive(s[8 * keys + 2 * part], s[8 * keys + 2 * part + 1]);
                    p_high[keys][part] = both.high;
                    p_low[keys][part] = both.low;
                }
            pin(p_high);
            pin(p_low);
            rescale[0] = next_rescale[0], rescale[1] = next_rescale[1];
        };

        // Products are started in turns; group 1 begins, as if group 2 had just had its turn.
        const auto wait_for_turn = [&] { asm volatile("bar.sync %0, 256;" ::"r"(group) : "memory"); };
        const auto pass_turn = [&] { asm volatile("bar.arrive %0, 256;" ::"r"(3 - group) : "memory"); };
        if (group == 2) pass_turn();

        for (int item = blockIdx.x; item < items; item += gridDim.x) {
            const size_t batch = item / row_tiles;
            const size_t matrix = size_t(n) * D;
            const size_t row = size_t(item % row_tiles) * kRows + my_row;
            const float* const q = input + 3 * batch * matrix + row * D + pair;
#pragma unroll
            for (int step = 0; step < Steps; ++step)
#pragma unroll
                for (int part = 0; part < 4; ++part) {
                    const float2 x =
                        *reinterpret_cast<const float2*>(q + part % 2 * 8 * D + 16 * step + part / 2 * 8);
                    const SplitPair both = split(x.x, x.y);
                    q_high[step][part] = both.high;
                    q_low[step][part] = both.low;
                }
            pin(q_high);
            pin(q_low);
            m[0] = m[1] = -INFINITY;
            l[0] = l[1] = 0.0f;
#pragma unroll
            for (int i = 0; i < D / 2; ++i) o[i] = 0.0f;

            const bool last_item = item + int(gridDim.x) >= items;
            wait_for_turn();
            start_scores();
            if (group == 1 || !last_item || key_tiles > 1) pass_turn();    // the very last turn is passed to nobody
            wgmma_wait<0>();
            pin(s);
            release_k();
            softmax();
            split_probabilities();
            for (int tile = 1; tile < key_tiles; ++tile) {
                wait_for_turn();
                start_scores();
                start_output();
                if (group == 1 || !last_item || tile + 1 < key_tiles) pass_turn();
                wgmma_wait<1>();
                pin(s);
                release_k();
                softmax();
                wgmma_wait<0>();
                finish_output();
                split_probabilities();
            }
            start_output();
            wgmma_wait<0>();
            finish_output();

            float* const out = output + batch * matrix + row * D + pair;
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                float total = l[r];
                total += __shfl_xor_sync(0xffffffffu, total, 1);
                total += __shfl_xor_sync(0xffffffffu, total, 2);
                const float inverse = 1.0f / total;
#pragma unroll
                for (int c = 0; c < D / 8; ++c)
                    *reinterpret_cast<float2*>(out + r * 8 * D + 8 * c) =
                        make_float2(o[4 * c + 2 * r] * inverse, o[4 * c + 2 * r + 1] * inverse);
            }
        }
    }
#endif
}

constexpr int kFrom = 512;    // rows from which this kernel is faster than tensor_cores.cu's

inline size_t workspace_bytes(int batches, int n, int d) {
    return n >= kFrom ? size_t(batches) * n * d * 2 * sizeof(float) : tensor_cores::workspace_bytes(batches, n, d);
}

// Whether the code for this GPU has wgmma: the empty kernel that other targets get has no barriers.
template <int D>
bool available() {
    cudaFuncAttributes attributes;
    if (cudaFuncGetAttributes(&attributes, attention<D>) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    return attributes.sharedSizeBytes > 0;
}

template <int D>
cudaError_t launch_dim(const Problem& problem) {
    using C = Config<D>;
    if (problem.rows < kFrom || !available<D>()) return tensor_cores::launch(problem);
    __half* const tiles = static_cast<__half*>(problem.workspace);
    tensor_cores::split_all<D, C::Keys><<<unsigned(problem.batches) * unsigned(problem.rows / C::Keys), 256, 0,
                                          problem.stream>>>(problem.input, tiles, problem.rows);
    cudaError_t error = cudaGetLastError();
    int device = 0, processors = 0;
    if (error == cudaSuccess) error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(attention<D>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::SharedBytes);
    if (error != cudaSuccess) return error;
    const int items = problem.batches * (problem.rows / kRows);
    const float scale = float(tensor_cores::kLog2E / std::sqrt(double(D)));
    attention<D><<<unsigned(items < processors ? items : processors), kThreads, C::SharedBytes, problem.stream>>>(
        problem.input, tiles, problem.output, problem.rows, items, scale);
    return cudaGetLastError();
}

inline cudaError_t launch(const Problem& problem) {
    return problem.dim == 32 ? launch_dim<32>(problem) : launch_dim<64>(problem);
}

}    // namespace hopper

ATTENTION_PROGRAM(hopper)
