// Bulk copies and what they complete at: barrier objects with bytes, bulk groups, tensor maps; elect.sync.
#include "conformance.h"

#include <cuda.h>

__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void start(void *object, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(object)), "r"(count) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void expect(void *object, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(object)), "r"(bytes) : "memory");
}
__device__ void wait(void *object, int parity) {
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }" ::"r"(at(object)), "r"(parity) : "memory");
}
__device__ void load(void *to, const void *from, int bytes, void *object) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at(to)), "l"(from), "r"(bytes), "r"(at(object)) : "memory");
}
__device__ void store(void *to, const void *from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(at(from)), "r"(bytes) : "memory");
}
#define COMMIT() asm volatile("cp.async.bulk.commit_group;" ::: "memory")
#define DRAIN() asm volatile("cp.async.bulk.wait_group 0;" ::: "memory")

// A ring of two tiles: a thread loads, the others double, one stores; three barrier objects with phases.
__global__ void ring(const int *in, int *out, int tiles) {
    __shared__ __align__(128) int tile[2][64];
    __shared__ unsigned long long full[2];
    const int t = threadIdx.x;
    if (t == 0) start(&full[0], 1), start(&full[1], 1);
    __syncthreads();
    for (int k = 0; k < tiles; k++) {
        const int s = k % 2;
        if (t == 0) {
            asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
            expect(&full[s], 256);
            load(tile[s], in + 64 * k, 128, &full[s]);
            load(tile[s] + 32, in + 64 * k + 32, 128, &full[s]);
        }
        wait(&full[s], k / 2 % 2);
        tile[s][t] *= 2;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (t == 0) {
            store(out + 64 * k, tile[s], 256);
            COMMIT();
        }
    }
    if (t == 0) DRAIN();
}
TEST(bulk_copies_go_round_a_ring) {
    Array<int> in(64 * 7, [](size_t i) { return (int)(noise(i) >> 4); }, 0), out(64 * 7);
    ring<<<1, 64>>>(in.device, out.device, 7);
    return finished() && equal(out.down(), [&](size_t i) { return 2 * in.host[i]; });
}

__global__ void counted_bytes(unsigned *out) {
    __shared__ unsigned long long object;
    unsigned done[4];
    if (threadIdx.x) return;
    start(&object, 1);
#define TEST_PARITY(i, p) asm volatile("{ .reg .pred q; mbarrier.test_wait.parity.shared::cta.b64 q, [%1], " #p "; selp.u32 %0, 1, 0, q; }" : "=r"(done[i]) : "r"(at(&object)) : "memory")
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 48;" ::"r"(at(&object)) : "memory");
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(&object)) : "memory");
    TEST_PARITY(0, 0);    // 48 bytes are missing
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 32;" ::"r"(at(&object)) : "memory");
    TEST_PARITY(1, 0);
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 16;" ::"r"(at(&object)) : "memory");
    TEST_PARITY(2, 0);
    TEST_PARITY(3, 1);
    for (int i = 0; i < 4; i++) out[i] = done[i];
}
TEST(a_barrier_object_counts_bytes) {
    Array<unsigned> out(4);
    counted_bytes<<<1, 32>>>(out.device);
    return finished() && equal(out.down(), [](size_t i) { return i == 2; });
}

__global__ void elected(unsigned *out) {
    unsigned leader, chosen;
    asm volatile("{ .reg .pred p; elect.sync %0|p, 0xffffffff; selp.u32 %1, 1, 0, p; }" : "=r"(leader), "=r"(chosen));
    out[threadIdx.x] = chosen == (leader == threadIdx.x);
    if (chosen) out[32] += 1;
}
TEST(one_lane_is_elected) {
    Array<unsigned> out(33);
    elected<<<1, 32>>>(out.device);
    return finished() && equal(out.down(), [](size_t) { return 1; });
}

__global__ void reductions(float *sums, int *least, unsigned *bits) {
    __shared__ __align__(128) float f[32];
    __shared__ __align__(128) int s[32];
    __shared__ __align__(128) unsigned u[32];
    const int t = threadIdx.x;
    f[t] = (float)t, s[t] = t % 2 ? -t : t, u[t] = 1u << t;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t) return;
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 128;" ::"l"(sums), "r"(at(f)) : "memory");
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s32 [%0], [%1], 128;" ::"l"(least), "r"(at(s)) : "memory");
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.or.b32 [%0], [%1], 128;" ::"l"(bits), "r"(at(u)) : "memory");
    COMMIT();
    DRAIN();
}
TEST(bulk_copies_reduce) {
    Array<float> sums(32, 0.5f);
    Array<int> least(32, -7);
    Array<unsigned> bits(32, 1u);
    reductions<<<4, 32>>>(sums.device, least.device, bits.device);
    return finished() && equal(sums.down(), [](size_t i) { return 0.5f + 4 * (float)i; }) &&
           equal(least.down(), [](size_t i) { return std::min(-7, i % 2 ? -(int)i : (int)i); }) && equal(bits.down(), [](size_t i) { return 1u | 1u << i; });
}

// ---- tensor maps ----------------------------------------------------------------------------------------------------

typedef CUresult (*Encode)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *, const cuuint32_t *, const cuuint32_t *,
                           CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
static Encode encode() {
    void *f = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &found);
    return (Encode)f;
}
struct Five { int i[5]; };

// The box at `corner` to shared memory, from there as it lies to `image`, and by the second map to another tensor.
#define BOX1 "{%2}"
#define BOX2 "{%2, %3}"
#define BOX3 "{%2, %3, %4}"
#define BOX4 "{%2, %3, %4, %5}"
#define BOX5 "{%2, %3, %4, %5, %6}"
#define CASE(d)                                                                                                        \
    if (rank == d) {                                                                                                   \
        asm volatile("cp.async.bulk.tensor." #d "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, " BOX##d "], [%7];" ::"r"(at(box)), "l"(&from), \
                     "r"(c.i[0]), "r"(c.i[1]), "r"(c.i[2]), "r"(c.i[3]), "r"(c.i[4]), "r"(at(&object)) : "memory");     \
        wait(&object, 0);                                                                                              \
        asm volatile("cp.async.bulk.tensor." #d "d.global.shared::cta.tile.bulk_group [%1, " BOX##d "], [%0];" ::"r"(at(box)), "l"(&to), "r"(c.i[0]), "r"(c.i[1]), \
                     "r"(c.i[2]), "r"(c.i[3]), "r"(c.i[4]) : "memory");                                                \
        asm volatile("cp.reduce.async.bulk.tensor." #d "d.global.shared::cta.add.tile.bulk_group [%1, " BOX##d "], [%0];" ::"r"(at(box)), "l"(&sum), "r"(c.i[0]), \
                     "r"(c.i[1]), "r"(c.i[2]), "r"(c.i[3]), "r"(c.i[4]) : "memory");                                   \
    }
__global__ void boxes(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to, const __grid_constant__ CUtensorMap sum, int rank, Five c, int bytes, int *image) {
    extern __shared__ __align__(1024) int box[];
    __shared__ unsigned long long object;
    if (threadIdx.x) return;
    start(&object, 1);
    expect(&object, bytes);
    CASE(1) CASE(2) CASE(3) CASE(4) CASE(5)
    COMMIT();
    DRAIN();
    for (int i = 0; i < bytes / 4; i++) image[i] = box[i];
}

static bool moves(int rank, Five size, Five part, Five corner, CUtensorMapSwizzle swizzle) {
    cuuint64_t sizes[5], strides[5], total = 4, count = 1;
    cuuint32_t box[5], ones[5] = {1, 1, 1, 1, 1};
    int elements = 1;
    for (int i = 0; i < rank; i++) {
        sizes[i] = (cuuint64_t)size.i[i], box[i] = (cuuint32_t)part.i[i];
        total *= sizes[i], count *= sizes[i], elements *= part.i[i];
        strides[i] = total;
    }
    Array<int> from(count, [](size_t i) { return (int)noise(i) | 1; }, 0), to(count), sum(count, 5), image((size_t)elements);
    CUtensorMap maps[3];
    int *const memory[3] = {from.device, to.device, sum.device};
    for (int m = 0; m < 3; m++)
        EXPECT(encode()(&maps[m], CU_TENSOR_MAP_DATA_TYPE_INT32, (cuuint32_t)rank, memory[m], sizes, strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
    boxes<<<1, 32, 4 * elements>>>(maps[0], maps[1], maps[2], rank, corner, 4 * elements, image.device);
    if (!finished()) return false;
    std::vector<int> box_image((size_t)elements), copied(count), added(count, 5);
    for (int e = 0; e < elements; e++) {
        int rest = e, inside = 1;
        size_t place = 0, step = 1;
        for (int i = 0; i < rank; i++) {
            const int x = corner.i[i] + rest % part.i[i];
            rest /= part.i[i];
            inside &= x >= 0 && x < size.i[i];
            place += (size_t)x * step, step *= sizes[i];
        }
        const int chunks = swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ? 1 : 1 << (int)swizzle;
        const int byte = 4 * e ^ ((4 * e >> 7) & (chunks - 1)) << 4;
        box_image[(size_t)byte / 4] = inside ? from.host[place] : 0;
        if (inside) copied[place] = from.host[place], added[place] += from.host[place];
    }
    return equal(image.down(), [&](size_t i) { return box_image[i]; }) && equal(to.down(), [&](size_t i) { return copied[i]; }) &&
           equal(sum.down(), [&](size_t i) { return added[i]; });
}
TEST(tensor_boxes_have_up_to_five_dimensions) {
    EXPECT(moves(1, {{100}}, {{32}}, {{48}}, CU_TENSOR_MAP_SWIZZLE_NONE));
    EXPECT(moves(2, {{40, 20}}, {{16, 8}}, {{8, 5}}, CU_TENSOR_MAP_SWIZZLE_NONE));
    EXPECT(moves(3, {{24, 7, 5}}, {{8, 3, 2}}, {{12, 4, 1}}, CU_TENSOR_MAP_SWIZZLE_NONE));
    EXPECT(moves(4, {{16, 5, 4, 3}}, {{8, 2, 2, 2}}, {{4, 1, 2, 1}}, CU_TENSOR_MAP_SWIZZLE_NONE));
    return moves(5, {{16, 3, 4, 3, 2}}, {{8, 2, 2, 2, 2}}, {{4, 1, 2, 0, 0}}, CU_TENSOR_MAP_SWIZZLE_NONE);
}
TEST(tensor_boxes_are_filled_outside_and_cut_when_stored) {
    EXPECT(moves(1, {{44}}, {{32}}, {{28}}, CU_TENSOR_MAP_SWIZZLE_NONE));
    EXPECT(moves(2, {{40, 20}}, {{32, 16}}, {{12, 9}}, CU_TENSOR_MAP_SWIZZLE_128B));
    return moves(3, {{24, 7, 5}}, {{16, 4, 4}}, {{16, 5, 3}}, CU_TENSOR_MAP_SWIZZLE_NONE);
}
TEST(tensor_boxes_are_swizzled) {
    EXPECT(moves(2, {{64, 32}}, {{8, 32}}, {{16, 0}}, CU_TENSOR_MAP_SWIZZLE_32B));
    EXPECT(moves(2, {{64, 32}}, {{16, 32}}, {{16, 0}}, CU_TENSOR_MAP_SWIZZLE_64B));
    return moves(2, {{64, 32}}, {{32, 32}}, {{16, 0}}, CU_TENSOR_MAP_SWIZZLE_128B);
}
