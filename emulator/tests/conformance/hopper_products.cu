// wgmma: operands in the four swizzles, by rows and by columns, in registers; every kind of element; what happens to the sums.
#include "conformance.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

enum { SWIZZLE_NONE, SWIZZLE_128, SWIZZLE_64, SWIZZLE_32 };
const int K_BYTES = 32;    // along k, of every kind

// A matrix of `rows` rows in shared memory, and how wgmma finds it there.
struct Layout {
    int swizzle, by_columns, rows;
    int chunks() const { return swizzle == SWIZZLE_NONE ? 1 : 16 >> swizzle; }    // of 16 bytes
    // By rows: groups of 8 rows follow each other. By columns: lines of `chunks` chunks, 8 lines of k together.
    uint64_t leading() const { return by_columns ? (swizzle ? 16 * 16 * chunks() : 128) : 8 * 16 * (rows / 8); }
    uint64_t stride() const { return by_columns ? (swizzle ? 8 * 16 * chunks() : 256) : 8 * 16 * chunks(); }
    // For a matrix that begins `start` bytes into the dynamic shared memory; see based.
    uint64_t descriptor(int start) const {
        return (uint64_t)start >> 4 | leading() >> 4 << 16 | stride() >> 4 << 32 | (uint64_t)swizzle << 62;
    }
    // The place of byte `at` along k of a row; by columns, of the half with that number.
    int place(int row, int at) const {
        const int s = chunks();
        int x;
        if (!by_columns) x = 16 * s * (row % 8) + (int)stride() * (row / 8) + (s == 1 ? (int)leading() : 16) * (at / 16) + at % 16;
        else {
            const int line = row / 8, in = row % 8 * 2;
            x = s == 1 ? 16 * (at % 8) + (int)leading() * (at / 8) + (int)stride() * line + in
                       : 16 * (line % s) + 16 * s * (at % 8) + (int)leading() * (line / s) + (int)stride() * (at / 8) + in;
        }
        return x ^ ((x >> 7) & (s - 1)) << 4;
    }
};

const int A_AT = 0, B_AT = 16384, SHARED = 32768;

struct Operands { uint64_t a, b; int adds; };

// A descriptor holds an address, and a block's own shared memory need not begin at 0: on sm_90 it begins at 1024.
__device__ uint64_t based(uint64_t descriptor, const void *shared) { return descriptor + (__cvta_generic_to_shared(shared) >> 4); }

#define S4(i) "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3])
#define S16(i) S4(i), S4(i + 4), S4(i + 8), S4(i + 12)
#define R16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define R32 R16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"

// One product of m64n64 with 32 registers of sums each. The registers of A hold the fragment of each warp.
#define PRODUCT(name, instruction, a_operand, more)                                                                    \
    __global__ void name(const unsigned *image, const unsigned *fragments, const unsigned *sums, unsigned *out, Operands o) { \
        extern __shared__ __align__(1024) unsigned shared[];                                                           \
        const int t = threadIdx.x;                                                                                     \
        for (int i = t; i < SHARED / 4; i += 128) shared[i] = image[i];                                                \
        unsigned d[32], a[4];                                                                                          \
        for (int i = 0; i < 32; i++) d[i] = sums[32 * t + i];                                                          \
        for (int i = 0; i < 4; i++) a[i] = fragments[4 * t + i];                                                       \
        asm volatile("fence.proxy.async;" ::: "memory");                                                               \
        __syncthreads();                                                                                               \
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                                        \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0;\n" instruction " {" R32 "}, " a_operand ", %33, p" more "; }" \
                     : S16(0), S16(16) : "l"(based(o.a, shared)), "l"(based(o.b, shared)), "r"(o.adds), "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])); \
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");                                                 \
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");                                                 \
        for (int i = 0; i < 32; i++) asm volatile("" : "+r"(d[i])::"memory");                                          \
        for (int i = 0; i < 32; i++) out[32 * t + i] = d[i];                                                           \
    }
#define MULTIPLY "wgmma.mma_async.sync.aligned.m64n64"
#define IN_REGISTERS "{%35, %36, %37, %38}"
PRODUCT(halves_rows_rows, MULTIPLY "k16.f32.f16.f16", "%32", ", 1, 1, 0, 0")
PRODUCT(halves_rows_columns, MULTIPLY "k16.f32.f16.f16", "%32", ", 1, 1, 0, 1")
PRODUCT(halves_columns_rows, MULTIPLY "k16.f32.f16.f16", "%32", ", 1, 1, 1, 0")
PRODUCT(halves_columns_columns, MULTIPLY "k16.f32.f16.f16", "%32", ", 1, 1, 1, 1")
PRODUCT(halves_registers_rows, MULTIPLY "k16.f32.f16.f16", IN_REGISTERS, ", 1, 1, 0")
PRODUCT(halves_registers_columns, MULTIPLY "k16.f32.f16.f16", IN_REGISTERS, ", 1, 1, 1")
PRODUCT(halves_negated, MULTIPLY "k16.f32.f16.f16", "%32", ", -1, 1, 0, 0")
PRODUCT(brain_floats, MULTIPLY "k16.f32.bf16.bf16", "%32", ", 1, -1, 0, 0")
PRODUCT(tensor_floats, MULTIPLY "k8.f32.tf32.tf32", "%32", ", 1, 1")
PRODUCT(small_floats, MULTIPLY "k32.f32.e4m3.e5m2", "%32", ", 1, 1")
PRODUCT(signed_bytes, MULTIPLY "k32.s32.s8.u8", "%32", "")
PRODUCT(bytes_in_registers, MULTIPLY "k32.s32.u8.s8", IN_REGISTERS, "")
PRODUCT(bits, MULTIPLY "k256.s32.b1.b1.and.popc", "%32", "")

typedef void (*Kernel)(const unsigned *, const unsigned *, const unsigned *, unsigned *, Operands);
typedef void (*Store)(uint8_t *to, int value);    // small integers, which are exact in every kind
static void as_half(uint8_t *to, int v) { const __half x = __float2half((float)v); memcpy(to, &x, 2); }
static void as_bfloat(uint8_t *to, int v) { const __nv_bfloat16 x = __float2bfloat16((float)v); memcpy(to, &x, 2); }
static void as_float(uint8_t *to, int v) { const float x = (float)v; memcpy(to, &x, 4); }
static void as_e4m3(uint8_t *to, int v) { const __nv_fp8_e4m3 x((float)v); memcpy(to, &x, 1); }
static void as_e5m2(uint8_t *to, int v) { const __nv_fp8_e5m2 x((float)v); memcpy(to, &x, 1); }
static void as_byte(uint8_t *to, int v) { *to = (uint8_t)v; }

struct Kind { Kernel kernel; Store a, b; int bytes; int low, high, sign; bool integers, a_in_registers; };

static int small(int i, const Kind &k) { return k.low + (int)(noise(i) % (unsigned)(k.high - k.low + 1)); }

// The row and the column of sum i of a thread, and the row and the word along k of register i of A.
static int sum_row(int t, int i) { return t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8; }
static int sum_column(int t, int i) { return i / 4 * 8 + t % 4 * 2 + i % 2; }

static bool product(const Kind &k, Layout a, Layout b, int adds) {
    const int depth = K_BYTES / k.bytes;
    Array<unsigned> image(SHARED / 4), fragments(512), sums(4096), out(4096);
    auto *const bytes = (uint8_t *)image.host.data();
    std::vector<uint8_t> rows(64 * K_BYTES);
    for (int r = 0; r < 64; r++)
        for (int x = 0; x < depth; x++) {
            k.a(bytes + A_AT + a.place(r, a.by_columns ? x : x * k.bytes), small(r * depth + x, k));
            k.b(bytes + B_AT + b.place(r, b.by_columns ? x : x * k.bytes), small(9999 + r * depth + x, k));
            k.a(&rows[r * K_BYTES + x * k.bytes], small(r * depth + x, k));
        }
    for (int t = 0; t < 128; t++)
        for (int i = 0; i < 4; i++) memcpy(&fragments.host[4 * t + i], &rows[(t / 32 * 16 + t % 32 / 4 + i % 2 * 8) * K_BYTES + (i / 2 * 4 + t % 4) * 4], 4);
    for (int i = 0; i < 4096; i++) {
        const float f = (float)(i % 100);
        if (k.integers) sums.host[i] = (unsigned)(i % 100);
        else memcpy(&sums.host[i], &f, 4);
    }
    image.up(), fragments.up(), sums.up();
    CHECK(cudaFuncSetAttribute(k.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
    k.kernel<<<1, 128, SHARED>>>(image.device, fragments.device, sums.device, out.device, Operands{a.descriptor(A_AT), b.descriptor(B_AT), adds});
    if (!finished()) return false;
    return equal(out.down(), [&](size_t n) {
        const int t = (int)n / 32, i = (int)n % 32, r = sum_row(t, i), c = sum_column(t, i);
        int sum = 0;
        for (int x = 0; x < depth; x++) sum += small(r * depth + x, k) * small(9999 + c * depth + x, k);
        sum = k.sign * sum + (adds ? (int)(n % 100) : 0);
        const float f = (float)sum;
        unsigned word = (unsigned)sum;
        if (!k.integers) memcpy(&word, &f, 4);
        return word;
    });
}

static Kind halves(Kernel kernel) { return {kernel, as_half, as_half, 2, -8, 8, 1, false, false}; }

TEST(wgmma_reads_every_swizzle_by_rows) {
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++) EXPECT(product(halves(halves_rows_rows), {a, 0, 64}, {b, 0, 64}, (a + b) % 2));
    return true;
}
TEST(wgmma_reads_every_swizzle_by_columns) {
    for (int s = 0; s < 4; s++) {
        EXPECT(product(halves(halves_rows_columns), {s, 0, 64}, {s, 1, 64}, 1));
        EXPECT(product(halves(halves_columns_rows), {s, 1, 64}, {3 - s, 0, 64}, 0));
        EXPECT(product(halves(halves_columns_columns), {s, 1, 64}, {3 - s, 1, 64}, 1));
    }
    return true;
}
TEST(wgmma_takes_a_from_registers) {
    EXPECT(product(halves(halves_registers_rows), {0, 0, 64}, {SWIZZLE_128, 0, 64}, 1));
    return product(halves(halves_registers_columns), {0, 0, 64}, {SWIZZLE_64, 1, 64}, 0);
}
TEST(wgmma_negates) {
    Kind k = halves(halves_negated);
    k.sign = -1;
    return product(k, {SWIZZLE_32, 0, 64}, {0, 0, 64}, 1);
}
TEST(wgmma_multiplies_every_kind) {
    EXPECT(product({brain_floats, as_bfloat, as_bfloat, 2, -8, 8, -1, false, false}, {SWIZZLE_128, 0, 64}, {SWIZZLE_64, 0, 64}, 1));
    EXPECT(product({tensor_floats, as_float, as_float, 4, -8, 8, 1, false, false}, {SWIZZLE_128, 0, 64}, {0, 0, 64}, 1));
    EXPECT(product({small_floats, as_e4m3, as_e5m2, 1, -3, 3, 1, false, false}, {SWIZZLE_128, 0, 64}, {SWIZZLE_32, 0, 64}, 0));
    EXPECT(product({signed_bytes, as_byte, as_byte, 1, 0, 100, 1, true, false}, {SWIZZLE_64, 0, 64}, {SWIZZLE_128, 0, 64}, 1));
    return product({bytes_in_registers, as_byte, as_byte, 1, 0, 100, 1, true, true}, {0, 0, 64}, {SWIZZLE_128, 0, 64}, 1);
}

// Bits: row r of A has r ones, and column c of B has those from c on.
TEST(wgmma_counts_bits) {
    Array<unsigned> image(SHARED / 4), fragments(512), sums(4096), out(4096);
    auto *const bytes = (uint8_t *)image.host.data();
    const Layout layout{SWIZZLE_128, 0, 64};
    for (int r = 0; r < 64; r++)
        for (int x = 0; x < 256; x++) {
            bytes[A_AT + layout.place(r, x / 8)] |= (uint8_t)((x < 2 * r) << x % 8);
            bytes[B_AT + layout.place(r, x / 8)] |= (uint8_t)((x >= r) << x % 8);
        }
    image.up();
    CHECK(cudaFuncSetAttribute(bits, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
    bits<<<1, 128, SHARED>>>(image.device, fragments.device, sums.device, out.device, Operands{layout.descriptor(A_AT), layout.descriptor(B_AT), 0});
    return finished() && equal(out.down(), [](size_t n) {
        const int r = sum_row((int)n / 32, (int)n % 32), c = sum_column((int)n / 32, (int)n % 32);
        return (unsigned)std::max(0, 2 * r - c);
    });
}

// Sums of halves, n = 8; two products in one group, and one more that stays in flight when the first group is waited for.
__global__ void groups(const unsigned *image, unsigned *out, Operands o) {
    extern __shared__ __align__(1024) unsigned shared[];
    const int t = threadIdx.x;
    for (int i = t; i < SHARED / 4; i += 128) shared[i] = image[i];
    unsigned first[2] = {0, 0}, second[2] = {0, 0};
    const uint64_t a = based(o.a, shared), b = based(o.b, shared);
    asm volatile("" : "+r"(first[0]), "+r"(first[1]), "+r"(second[0]), "+r"(second[1]));    // written before the fence
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#define HALVES(d)                                                                                                      \
    asm volatile("{ .reg .pred p; setp.eq.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, %2, %3, p, 1, 1, 0, 0; }" \
                 : "+r"(d[0]), "+r"(d[1]) : "l"(a), "l"(b))
    HALVES(first);
    HALVES(first);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    HALVES(second);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    asm volatile("" : "+r"(first[0]), "+r"(first[1])::"memory");
    out[4 * t] = first[0], out[4 * t + 1] = first[1];
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    asm volatile("" : "+r"(second[0]), "+r"(second[1])::"memory");
    out[4 * t + 2] = second[0], out[4 * t + 3] = second[1];
}
TEST(wgmma_groups_are_waited_for_in_their_order) {
    Array<unsigned> image(SHARED / 4), out(512);
    auto *const bytes = (uint8_t *)image.host.data();
    const Layout a{SWIZZLE_64, 0, 64}, b{SWIZZLE_32, 0, 8};
    for (int x = 0; x < 16; x++) {
        for (int r = 0; r < 64; r++) as_half(bytes + A_AT + a.place(r, 2 * x), (int)(noise(16 * r + x) % 9) - 4);
        for (int c = 0; c < 8; c++) as_half(bytes + B_AT + b.place(c, 2 * x), (int)(noise(5000 + 16 * c + x) % 9) - 4);
    }
    image.up();
    groups<<<1, 128, SHARED>>>(image.device, out.device, Operands{a.descriptor(A_AT), b.descriptor(B_AT), 1});
    return finished() && equal(out.down(), [](size_t n) {
        const int t = (int)n / 4, i = (int)n % 4;
        uint8_t halves[4];
        for (int h = 0; h < 2; h++) {
            int sum = 0;
            for (int x = 0; x < 16; x++) sum += ((int)(noise(16 * sum_row(t, 2 * (i % 2)) + x) % 9) - 4) * ((int)(noise(5000 + 16 * (t % 4 * 2 + h) + x) % 9) - 4);
            as_half(halves + 2 * h, i < 2 ? 2 * sum : sum);
        }
        unsigned word;
        memcpy(&word, halves, 4);
        return word;
    });
}
