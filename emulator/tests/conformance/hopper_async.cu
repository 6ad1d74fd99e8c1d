// What Hopper has apart from tiles and products: stores and reductions that complete at another block's barrier object, columns
// of pixels (im2col), conversions of 8-bit floats, registers that warps pass on, kernels that begin early.
#include "conformance.h"

#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_fp8.h>

namespace cg = cooperative_groups;

__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ unsigned mapped(const void *p, unsigned rank) {
    unsigned address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(at(p)), "r"(rank));
    return address;
}
__device__ void start(void *object, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(object)), "r"(count) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void expect(void *object, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(object)), "r"(bytes) : "memory");
}
__device__ void wait(void *object, int parity) {
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1; @!p bra again; }" ::"r"(at(object)), "r"(parity) : "memory");
}

__global__ void __cluster_dims__(4, 1, 1) ranks(unsigned *out) {
    __shared__ int mine;
    cg::cluster_group c = cg::this_cluster();
    const unsigned t = threadIdx.x, other = (t + c.block_rank()) % 4;
    unsigned own, short_rank, rank;
    asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(own) : "r"(at(&mine)));
    asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(short_rank) : "r"(mapped(&mine, other)));
    asm("getctarank.u64 %0, %1;" : "=r"(rank) : "l"(c.map_shared_rank(&mine, other)));
    out[32 * blockIdx.x + t] = own + 10 * short_rank + 100 * rank;
    c.sync();
}
TEST(an_address_tells_its_block) {
    Array<unsigned> out(32 * 8);
    ranks<<<8, 32>>>(out.device);
    return finished() && equal(out.down(), [](size_t i) {
        const size_t own = i / 32 % 4, other = (i % 32 + own) % 4;
        return own + 110 * other;
    });
}

// Every block sends its numbers to the next one, in words of every kind, and waits for those of the one before.
struct Sent {
    int one[32];
    long long two[32];
    float4 four[32];
    longlong2 pair[32];
};
__global__ void __cluster_dims__(4, 1, 1) sends(Sent *out, int rounds) {
    __shared__ __align__(16) Sent got;
    __shared__ unsigned long long full;
    cg::cluster_group c = cg::this_cluster();
    const int t = threadIdx.x, rank = (int)c.block_rank(), next = (rank + 1) % 4;
    if (t == 0) start(&full, 1);
    c.sync();
    for (int k = 0; k < rounds; k++) {
        if (t == 0) expect(&full, (int)sizeof(Sent));
        const int v = 1000 * k + 100 * rank + t;
        const unsigned done = mapped(&full, next);
#define SEND(type, place, ...) asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes." type ", [%1];" ::"r"(mapped(&got.place[t], next)), "r"(done), __VA_ARGS__ : "memory")
        SEND("b32 [%0], %2", one, "r"(v));
        SEND("b64 [%0], %2", two, "l"((long long)v << 33));
        SEND("v4.f32 [%0], {%2, %3, %4, %5}", four, "f"((float)v), "f"(1.0f), "f"((float)-v), "f"(0.5f));
        SEND("v2.s64 [%0], {%2, %3}", pair, "l"((long long)v), "l"((long long)-v));
        wait(&full, k % 2);
        Sent *const o = out + rounds * blockIdx.x + k;
        o->one[t] = got.one[t], o->two[t] = got.two[t], o->four[t] = got.four[t], o->pair[t] = got.pair[t];
        c.sync();
    }
}
TEST(stores_arrive_in_another_block) {
    const int rounds = 3;
    Array<Sent> out(8 * rounds);
    sends<<<8, 32>>>(out.device, rounds);
    if (!finished()) return false;
    out.down();
    for (int i = 0; i < 8 * rounds; i++)
        for (int t = 0; t < 32; t++) {
            const int v = 1000 * (i % rounds) + 100 * ((i / rounds + 3) % 4) + t;
            const Sent &s = out.host[(size_t)i];
            EXPECT(s.one[t] == v && s.two[t] == (long long)v << 33 && s.pair[t].x == v && s.pair[t].y == -v);
            EXPECT(s.four[t].x == (float)v && s.four[t].y == 1 && s.four[t].z == (float)-v && s.four[t].w == 0.5f);
        }
    return true;
}

// All threads of all blocks combine their numbers in block 0.
struct Combined { unsigned add, inc, dec, all, any, odd; int least, most; unsigned long long sum; unsigned lowest, highest; };
__global__ void __cluster_dims__(4, 1, 1) combines(Combined *out) {
    __shared__ Combined sums;
    __shared__ unsigned long long full;
    cg::cluster_group c = cg::this_cluster();
    const unsigned t = threadIdx.x, v = 32 * c.block_rank() + t;
    if (t == 0) {
        start(&full, 1);
        sums = Combined{5, 0, 200, ~0u, 0, 0, 1000, -1000, 1ull << 40, 1000, 3};
    }
    c.sync();
    if (t == 0 && v == 0) expect(&full, 128 * (10 * 4 + 8));
    const unsigned done = mapped(&full, 0);
#define COMBINE(how, place, kind, value) asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes." how " [%0], %1, [%2];" ::"r"(mapped(&sums.place, 0)), kind(value), "r"(done) : "memory")
    COMBINE("add.u32", add, "r", v);
    COMBINE("inc.u32", inc, "r", 99u);
    COMBINE("dec.u32", dec, "r", 1000u);
    COMBINE("and.b32", all, "r", ~(1u << t % 8));
    COMBINE("or.b32", any, "r", 1u << t);
    COMBINE("xor.b32", odd, "r", v);
    COMBINE("min.s32", least, "r", 7 - (int)v);
    COMBINE("max.s32", most, "r", 7 - (int)v);
    COMBINE("add.u64", sum, "l", (unsigned long long)v << 30);
    COMBINE("min.u32", lowest, "r", v + 2);
    COMBINE("max.u32", highest, "r", v);
    if (c.block_rank() == 0) {
        wait(&full, 0);
        if (t == 0) out[blockIdx.x / 4] = sums;
    }
    c.sync();
}
TEST(reductions_arrive_in_another_block) {
    Array<Combined> out(2);
    combines<<<8, 32>>>(out.device);
    if (!finished()) return false;
    out.down();
    for (int i = 0; i < 2; i++) {
        const Combined &s = out.host[(size_t)i];
        EXPECT(s.add == 5 + 127 * 64 && s.inc == 28 && s.dec == 72 && s.all == ~0xffu && s.any == ~0u && s.odd == 0);
        EXPECT(s.least == 7 - 127 && s.most == 7 && s.sum == (1ull << 40) + (127ull * 64 << 30) && s.lowest == 2 && s.highest == 127);
    }
    return true;
}

// ---- columns of pixels ----------------------------------------------------------------------------------------------

struct Column { int rank, size[5], low[3], high[3], step[3], channels, pixels, corner[5], offset[3]; CUtensorMapSwizzle swizzle; bool stores; };

#define PIXELS3 "{%2, %3, %4}"
#define PIXELS4 "{%2, %3, %4, %5}"
#define PIXELS5 "{%2, %3, %4, %5, %6}"
#define OFFSETS3 "{%8}"
#define OFFSETS4 "{%8, %9}"
#define OFFSETS5 "{%8, %9, %10}"
#define CORNER "r"(c.corner[0]), "r"(c.corner[1]), "r"(c.corner[2]), "r"(c.corner[3]), "r"(c.corner[4])
#define COLUMN(d)                                                                                                      \
    if (c.rank == d) {                                                                                                 \
        asm volatile("cp.async.bulk.tensor." #d "d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, " PIXELS##d "], [%7], " OFFSETS##d ";" ::"r"(at(box)), \
                     "l"(&from), CORNER, "r"(at(&object)), "h"((short)c.offset[0]), "h"((short)c.offset[1]), "h"((short)c.offset[2]) : "memory"); \
        wait(&object, 0);                                                                                              \
        if (c.stores) asm volatile("cp.async.bulk.tensor." #d "d.global.shared::cta.im2col_no_offs.bulk_group [%1, " PIXELS##d "], [%0];" ::"r"(at(box)), "l"(&to), CORNER : "memory"); \
    }
__global__ void columns(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to, Column c, int bytes, int *image) {
    extern __shared__ __align__(1024) int box[];
    __shared__ unsigned long long object;
    if (threadIdx.x) return;
    start(&object, 1);
    expect(&object, bytes);
    COLUMN(3) COLUMN(4) COLUMN(5)
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    for (int i = 0; i < bytes / 4; i++) image[i] = box[i];
}

typedef CUresult (*Encode)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *, const int *, const int *, cuuint32_t, cuuint32_t,
                           const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
// Pixels follow each other inside their box, W first; a load adds its offsets to the place of each.
static bool moves(const Column &c) {
    void *found = nullptr;
    cudaDriverEntryPointQueryResult status;
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", &found, 12000, cudaEnableDefault, &status));
    cuuint64_t sizes[5], strides[5], total = 4, count = 1;
    cuuint32_t steps[5] = {1, 1, 1, 1, 1};
    for (int i = 0; i < c.rank; i++) {
        sizes[i] = (cuuint64_t)c.size[i], total *= sizes[i], count *= sizes[i], strides[i] = total;
        if (i > 0 && i < c.rank - 1) steps[i] = (cuuint32_t)c.step[i - 1];
    }
    const int elements = c.channels * c.pixels;
    Array<int> from(count, [](size_t i) { return (int)noise(i) | 1; }, 0), to(count), image((size_t)elements);
    CUtensorMap maps[2];
    for (int m = 0; m < 2; m++)
        EXPECT(((Encode)found)(&maps[m], CU_TENSOR_MAP_DATA_TYPE_INT32, (cuuint32_t)c.rank, m ? to.device : from.device, sizes, strides, c.low, c.high, (cuuint32_t)c.channels,
                               (cuuint32_t)c.pixels, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, c.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
    columns<<<1, 32, 4 * elements>>>(maps[0], maps[1], c, 4 * elements, image.device);
    if (!finished()) return false;
    std::vector<int> want((size_t)elements), copied(count);
    int place[5];
    memcpy(place, c.corner, sizeof place);
    for (int p = 0; p < c.pixels; p++) {
        for (int e = 0; e < c.channels; e++) {
            size_t source = 0, target = 0, step = 1;
            bool is_inside = true, is_stored = true;
            for (int i = 0; i < c.rank; i++) {
                const int x = i == 0 ? place[0] + e : place[i], read = x + (i > 0 && i < c.rank - 1 ? c.offset[i - 1] : 0);
                is_inside &= read >= 0 && read < c.size[i], is_stored &= x >= 0 && x < c.size[i];
                source += (size_t)read * step, target += (size_t)x * step, step *= sizes[i];
            }
            const int at = 4 * (p * c.channels + e), chunks = c.swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ? 1 : 1 << (int)c.swizzle, value = is_inside ? from.host[source] : 0;
            want[(size_t)(at ^ ((at >> 7) & (chunks - 1)) << 4) / 4] = value;
            if (is_stored && c.stores) copied[target] = value;
        }
        for (int i = 1; i < c.rank; i++) {
            if (i == c.rank - 1) place[i]++;
            else if ((place[i] += c.step[i - 1]) > c.size[i] - 1 + c.high[i - 1]) place[i] = c.low[i - 1];
            else break;
        }
    }
    return equal(image.down(), [&](size_t i) { return want[i]; }) && equal(to.down(), [&](size_t i) { return copied[i]; });
}
TEST(pixels_come_in_columns) {
    EXPECT(moves({3, {8, 9, 4}, {0}, {0}, {1}, 8, 16, {0, 0, 0}, {0}, CU_TENSOR_MAP_SWIZZLE_NONE, false}));
    EXPECT(moves({3, {8, 9, 4}, {0}, {-2}, {1}, 8, 16, {0, 3, 1}, {2}, CU_TENSOR_MAP_SWIZZLE_NONE, false}));
    return moves({4, {16, 7, 5, 3}, {0, 0}, {-2, -1}, {1, 1}, 8, 24, {8, 2, 1, 0}, {2, 1}, CU_TENSOR_MAP_SWIZZLE_NONE, false});
}
TEST(pixels_around_a_picture_are_zeros) {
    EXPECT(moves({3, {8, 9, 4}, {-1}, {-1}, {1}, 8, 16, {0, -1, 0}, {0}, CU_TENSOR_MAP_SWIZZLE_NONE, false}));
    EXPECT(moves({3, {8, 9, 4}, {0}, {1}, {1}, 8, 16, {-4, 3, -1}, {0}, CU_TENSOR_MAP_SWIZZLE_NONE, false}));
    EXPECT(moves({4, {16, 7, 5, 3}, {-1, -1}, {-1, -1}, {1, 1}, 8, 24, {8, 2, 1, 0}, {2, 1}, CU_TENSOR_MAP_SWIZZLE_NONE, false}));
    return moves({5, {4, 5, 4, 3, 2}, {-1, 0, -1}, {-1, -1, 0}, {1, 1, 1}, 4, 32, {0, 1, 0, -1, 0}, {1, 0, 1}, CU_TENSOR_MAP_SWIZZLE_NONE, false});
}
TEST(pixels_are_skipped_by_strides) {
    EXPECT(moves({3, {8, 12, 3}, {-1}, {0}, {2}, 8, 16, {0, 1, 0}, {0}, CU_TENSOR_MAP_SWIZZLE_NONE, false}));
    EXPECT(moves({3, {8, 9, 4}, {0}, {0}, {2}, 8, 8, {0, 1, 0}, {0}, CU_TENSOR_MAP_SWIZZLE_NONE, false})); // odd places, then even ones
    return moves({4, {8, 9, 7, 2}, {-1, -1}, {0, 0}, {2, 3}, 8, 8, {0, -1, -1, 0}, {0, 2}, CU_TENSOR_MAP_SWIZZLE_NONE, false});
}
TEST(columns_of_pixels_are_swizzled) {
    EXPECT(moves({3, {32, 9, 4}, {0}, {-2}, {1}, 8, 32, {16, 0, 0}, {2}, CU_TENSOR_MAP_SWIZZLE_32B, false}));
    return moves({4, {64, 5, 5, 2}, {-1, -1}, {-1, -1}, {1, 1}, 32, 32, {32, 0, 0, 0}, {1, 2}, CU_TENSOR_MAP_SWIZZLE_128B, false});
}
TEST(columns_of_pixels_are_stored) {
    EXPECT(moves({3, {8, 9, 4}, {0}, {0}, {1}, 8, 16, {0, 3, 1}, {0}, CU_TENSOR_MAP_SWIZZLE_NONE, true}));
    EXPECT(moves({3, {8, 9, 4}, {1}, {-1}, {1}, 8, 16, {0, 1, 0}, {0}, CU_TENSOR_MAP_SWIZZLE_NONE, true}));
    EXPECT(moves({3, {8, 9, 4}, {0}, {0}, {2}, 8, 8, {4, 1, 3}, {0}, CU_TENSOR_MAP_SWIZZLE_NONE, true})); // ends outside
    return moves({4, {64, 5, 5, 2}, {0, 0}, {0, 0}, {1, 1}, 32, 32, {32, 1, 2, 0}, {0, 0}, CU_TENSOR_MAP_SWIZZLE_128B, true});
}

// ---- 8-bit floats ---------------------------------------------------------------------------------------------------

__global__ void small_floats(unsigned short *pairs, unsigned *halves, unsigned short *of_halves) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned both = i | (i ^ 0x5a5a) << 16;
    unsigned short e4, e5, f4, f5;
    unsigned h4, h5;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(e4) : "f"(__uint_as_float(i << 16 | 0x8000)), "f"(__uint_as_float(i << 16)));
    asm("cvt.rn.satfinite.relu.e5m2x2.f32 %0, %1, %2;" : "=h"(e5) : "f"(__uint_as_float(i << 16 | 0x8000)), "f"(__uint_as_float(i << 16)));
    asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(f4) : "r"(both));
    asm("cvt.rn.satfinite.e5m2x2.f16x2 %0, %1;" : "=h"(f5) : "r"(both));
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(h4) : "h"((unsigned short)i));
    asm("cvt.rn.relu.f16x2.e5m2x2 %0, %1;" : "=r"(h5) : "h"((unsigned short)i));
    pairs[i] = e4, pairs[i + 65536] = e5, of_halves[i] = f4, of_halves[i + 65536] = f5, halves[i] = h4, halves[i + 65536] = h5;
}
static unsigned coded(float x, __nv_fp8_interpretation_t type) { return std::isnan(x) ? 0x7f : __nv_cvt_float_to_fp8(x, __NV_SATFINITE, type); }
static unsigned half_coded(unsigned short h, __nv_fp8_interpretation_t type) {
    __half_raw raw;
    raw.x = h;
    return coded(__half2float(__half(raw)), type);
}
static float of_bits(unsigned bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
static float positive(float x) { return std::isnan(x) ? x : x > 0 ? x : 0; }
TEST(small_floats_are_converted_in_pairs) {
    Array<unsigned short> pairs(2 * 65536), of_halves(2 * 65536);
    Array<unsigned> halves(2 * 65536);
    small_floats<<<256, 256>>>(pairs.device, halves.device, of_halves.device);
    if (!finished()) return false;
    const auto raw = [](size_t code, __nv_fp8_interpretation_t type) { return (unsigned)__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)code, type).x; };
    EXPECT(equal(pairs.down(), [](size_t i) {
        const unsigned bits = (unsigned)(i % 65536) << 16;
        const float high = of_bits(bits | 0x8000), low = of_bits(bits);
        return i < 65536 ? coded(high, __NV_E4M3) << 8 | coded(low, __NV_E4M3) : coded(positive(high), __NV_E5M2) << 8 | coded(positive(low), __NV_E5M2);
    }));
    EXPECT(equal(of_halves.down(), [](size_t i) {
        const __nv_fp8_interpretation_t type = i < 65536 ? __NV_E4M3 : __NV_E5M2;
        return half_coded((unsigned short)(i ^ 0x5a5a), type) << 8 | half_coded((unsigned short)i, type);
    }));
    return equal(halves.down(), [&](size_t i) {
        if (i < 65536) return raw(i >> 8, __NV_E4M3) << 16 | raw(i & 255, __NV_E4M3);
        const unsigned high = raw(i >> 8 & 255, __NV_E5M2), low = raw(i & 255, __NV_E5M2);
        return (high & 0x8000 ? 0 : high) << 16 | (low & 0x8000 ? 0 : low);
    });
}

// ---- warps and kernels ----------------------------------------------------------------------------------------------

// A warpgroup gives registers away and fills a tile, the other takes them; named barriers pass the tile to and fro.
__global__ void __launch_bounds__(256, 1) passes(const int *in, int *out, int rounds) {
    __shared__ int tile[128];
    const int t = threadIdx.x % 128;
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        for (int k = 0; k < rounds; k++) {
            asm volatile("barrier.sync.aligned 2, 256;" ::: "memory");
            tile[t] = in[128 * k + t];
            asm volatile("barrier.arrive.aligned 1, 256;" ::: "memory");
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        for (int k = 0; k < rounds; k++) {
            asm volatile("bar.arrive 2, 256;" ::: "memory");
            asm volatile("bar.sync 1, 256;" ::: "memory");
            out[128 * k + t] = tile[127 - t];
        }
    }
}
TEST(warpgroups_pass_registers_and_tiles) {
    Array<int> in(128 * 6, [](size_t i) { return (int)noise(i); }, 0), out(128 * 6);
    passes<<<1, 256>>>(in.device, out.device, 6);
    return finished() && equal(out.down(), [&](size_t i) { return in.host[i / 128 * 128 + 127 - i % 128]; });
}

// Matrices of 8 x 8 halves, stored as they lie and transposed; lane l holds columns 2 (l % 4) and the next of row l / 4.
__global__ void stores_matrices(unsigned short *out) {
    __shared__ __align__(16) unsigned short as_is[4][64], transposed[2][64];
    const unsigned l = threadIdx.x, place = l / 4 * 8 + l % 4 * 2;
    unsigned r[4];
    for (unsigned k = 0; k < 4; k++) r[k] = (64 * k + place) | (64 * k + place + 1) << 16;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at(&as_is[l / 8][l % 8 * 8])), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(at(&transposed[l / 8 % 2][l % 8 * 8])), "r"(r[0]), "r"(r[1]) : "memory");
    __syncwarp();
    for (unsigned i = l; i < 384; i += 32) out[i] = i < 256 ? (&as_is[0][0])[i] : (&transposed[0][0])[i - 256];
}
TEST(matrices_are_stored) {
    Array<unsigned short> out(384);
    stores_matrices<<<1, 32>>>(out.device);
    return finished() && equal(out.down(), [](size_t i) {
        const size_t j = i - 256;
        return i < 256 ? i : j / 64 * 64 + j % 8 * 8 + j / 8 % 8;
    });
}

// The second kernel may begin before the first has ended; what it reads after its wait is whole.
__global__ void first_kernel(const int *in, int *between) {
    asm volatile("griddepcontrol.launch_dependents;");
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    int x = in[i];
    for (int k = 0; k < 1000; k++) x = x * 5 + k;
    between[i] = x;
}
__global__ void second_kernel(const int *between, int *out, int count) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    asm volatile("griddepcontrol.wait;" ::: "memory");
    out[i] = between[count - 1 - i] + 1;
}
TEST(a_kernel_waits_for_the_one_before) {
    const int count = 64 * 128;
    Array<int> in((size_t)count, [](size_t i) { return (int)noise(i); }, 0), between((size_t)count), out((size_t)count);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = 64, config.blockDim = 128, config.stream = stream, config.attrs = &attribute, config.numAttrs = 1;
    for (int round = 0; round < 3; round++) {
        first_kernel<<<64, 128, 0, stream>>>(in.device, between.device);
        CHECK(cudaLaunchKernelEx(&config, second_kernel, (const int *)between.device, out.device, count));
    }
    return finished() && equal(out.down(), [&](size_t i) {
        int x = in.host[(size_t)count - 1 - i];
        for (int k = 0; k < 1000; k++) x = (int)((unsigned)x * 5u + (unsigned)k);
        return (int)((unsigned)x + 1u);
    });
}
