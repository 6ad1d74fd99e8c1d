// Every form of mma.sync that sm_80 has, against integer arithmetic on the host. Matrices hold small integers, so that all
// sums are exact in every type. Layouts are those of the PTX ISA, "Matrix fragments for mma".
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "conformance.h"
#include "instruction.h"

enum Type { F16, BF16, TF32, F32, S8, U8, S4, U4, B1, S32 };
static int bits_of(Type t) { return t == F16 || t == BF16 ? 16 : t == S8 || t == U8 ? 8 : t == S4 || t == U4 ? 4 : t == B1 ? 1 : 32; }
static unsigned encode(Type t, int v) {
    const float f = (float)v;
    unsigned u;
    memcpy(&u, &f, 4);
    switch (t) {
    case F16: return __half_as_ushort(__float2half(f));
    case BF16: return u >> 16;
    case TF32: case F32: return u;
    case S32: return (unsigned)v;
    default: return (unsigned)v & ((1u << bits_of(t)) - 1);
    }
}
static int pick(Type t, uint64_t i) { // a small number that the type holds
    const int n = (int)(noise(i) % 1000);
    return t == B1 ? n % 2 : t == U8 ? n % 200 + 56 : t == U4 ? n % 16 : t == S8 ? n % 256 - 128 : t == S4 ? n % 16 - 8 : n % 7 - 3;
}

struct Matrices {
    int m, n, k;
    std::vector<int> a, b, c;
    Matrices(int m, int n, int k, Type at, Type bt) : m(m), n(n), k(k), a(m * k), b(k * n), c(m * n) {
        for (int i = 0; i < m * k; i++) a[i] = pick(at, i);
        for (int i = 0; i < k * n; i++) b[i] = pick(bt, i + 5000);
        for (int i = 0; i < m * n; i++) c[i] = (int)(noise(i + 9000) % 33) - 16;
    }
    int expected(int i, int j, const char *how = "") const {
        int s = c[i * n + j];
        for (int x = 0; x < k; x++) {
            const int p = a[i * k + x], q = b[x * n + j];
            s += *how == 'x' ? p ^ q : p * q; // of single bits, and is the product
        }
        return s;
    }
};
struct Registers {
    Array<unsigned> a{128}, b{128}, c{256}, d{256}, e{32};
    void run(Instruction f) {
        a.up(), b.up(), c.up(), e.up();
        f<<<1, 32>>>(a.device, b.device, c.device, d.device, e.device);
    }
};
static void put(Array<unsigned> &registers, int r, int lane, int element, Type t, int v) {
    registers.host[32 * r + lane] |= encode(t, v) << (element * bits_of(t));
}
// Where register r, element e of C and D lie.
struct Place { int row, column; };
static Place accumulator(Type t, int lane, int r, int e) {
    const int g = lane / 4, q = lane % 4;
    return t == F16 ? Place{g + 8 * r, 2 * q + e} : Place{g + 8 * (r / 2), 2 * q + r % 2};
}
static void put_accumulators(Registers &regs, const Matrices &x, Type t) {
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < x.m * x.n / 32; i++) {
            const int r = t == F16 ? i / 2 : i, e = t == F16 ? i % 2 : 0;
            const Place p = accumulator(t, l, r, e);
            put(regs.c, r, l, e, t, x.c[p.row * x.n + p.column]);
        }
}
static bool accumulators_are_right(Registers &regs, const Matrices &x, Type t, const char *how) {
    regs.d.down();
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < x.m * x.n / 32; i++) {
            const int r = t == F16 ? i / 2 : i, e = t == F16 ? i % 2 : 0;
            const Place p = accumulator(t, l, r, e);
            const unsigned got = regs.d.host[32 * r + l] >> (e * 16) & (t == F16 ? 0xffffu : ~0u);
            if (got != encode(t, x.expected(p.row, p.column, how))) {
                printf("  row %d, column %d: got 0x%x, expected %d\n", p.row, p.column, got, x.expected(p.row, p.column, how));
                return false;
            }
        }
    return true;
}

static void put_b(Registers &regs, const Matrices &x, Type t) {
    const int E = 32 / bits_of(t);
    for (int l = 0; l < 32; l++)
        for (int r = 0; r < x.k / (4 * E); r++)
            for (int i = 0; i < E; i++) put(regs.b, r, l, i, t, x.b[(l % 4 * E + 4 * E * r + i) * 8 + l / 4]);
}
static bool dense(Instruction f, int m, int k, Type at, Type bt, Type ct, const char *how = "") {
    Matrices x(m, 8, k, at, bt);
    Registers regs;
    const int E = 32 / bits_of(at), blocks = m / 8;
    for (int l = 0; l < 32; l++)
        for (int r = 0; r < blocks * k / (4 * E); r++)
            for (int i = 0; i < E; i++) put(regs.a, r, l, i, at, x.a[(l / 4 + r % blocks * 8) * k + l % 4 * E + r / blocks * 4 * E + i]);
    put_b(regs, x, bt), put_accumulators(regs, x, ct);
    regs.run(f);
    return finished() && accumulators_are_right(regs, x, ct, how);
}

#define D4 "{%%d0,%%d1,%%d2,%%d3}, "
#define C4 ", {%%c0,%%c1,%%c2,%%c3}"
INSTRUCTION(f16_k8, "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 " D4 "{%%a0,%%a1}, {%%b0}" C4 ";")
INSTRUCTION(f16_k16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " D4 "{%%a0,%%a1,%%a2,%%a3}, {%%b0,%%b1}" C4 ";")
INSTRUCTION(f16_k8_f16, "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%%d0,%%d1}, {%%a0,%%a1}, {%%b0}, {%%c0,%%c1};")
INSTRUCTION(f16_k16_f16, "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%%d0,%%d1}, {%%a0,%%a1,%%a2,%%a3}, {%%b0,%%b1}, {%%c0,%%c1};")
INSTRUCTION(bf16_k8, "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 " D4 "{%%a0,%%a1}, {%%b0}" C4 ";")
INSTRUCTION(bf16_k16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 " D4 "{%%a0,%%a1,%%a2,%%a3}, {%%b0,%%b1}" C4 ";")
INSTRUCTION(tf32_k4, "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 " D4 "{%%a0,%%a1}, {%%b0}" C4 ";")
INSTRUCTION(tf32_k8, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 " D4 "{%%a0,%%a1,%%a2,%%a3}, {%%b0,%%b1}" C4 ";")
TEST(mma_of_halves_and_tf32_in_every_shape) {
    EXPECT(dense(f16_k8, 16, 8, F16, F16, F32) && dense(f16_k16, 16, 16, F16, F16, F32));
    EXPECT(dense(f16_k8_f16, 16, 8, F16, F16, F16) && dense(f16_k16_f16, 16, 16, F16, F16, F16));
    EXPECT(dense(bf16_k8, 16, 8, BF16, BF16, F32) && dense(bf16_k16, 16, 16, BF16, BF16, F32));
    EXPECT(dense(tf32_k4, 16, 4, TF32, TF32, F32) && dense(tf32_k8, 16, 8, TF32, TF32, F32));
    return true;
}
INSTRUCTION(s8_m8, "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%%d0,%%d1}, {%%a0}, {%%b0}, {%%c0,%%c1};")
INSTRUCTION(s8_k16, "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 " D4 "{%%a0,%%a1}, {%%b0}" C4 ";")
INSTRUCTION(u8_k32, "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 " D4 "{%%a0,%%a1,%%a2,%%a3}, {%%b0,%%b1}" C4 ";")
INSTRUCTION(s8_u8_k32, "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 " D4 "{%%a0,%%a1,%%a2,%%a3}, {%%b0,%%b1}" C4 ";")
INSTRUCTION(u8_s8_k16, "mma.sync.aligned.m16n8k16.row.col.satfinite.s32.u8.s8.s32 " D4 "{%%a0,%%a1}, {%%b0}" C4 ";")
TEST(mma_of_bytes_in_every_shape) {
    EXPECT(dense(s8_m8, 8, 16, S8, S8, S32) && dense(s8_k16, 16, 16, S8, S8, S32));
    EXPECT(dense(u8_k32, 16, 32, U8, U8, S32) && dense(s8_u8_k32, 16, 32, S8, U8, S32) && dense(u8_s8_k16, 16, 16, U8, S8, S32));
    return true;
}
INSTRUCTION(s4_m8, "mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 {%%d0,%%d1}, {%%a0}, {%%b0}, {%%c0,%%c1};")
INSTRUCTION(u4_k32, "mma.sync.aligned.m16n8k32.row.col.s32.u4.u4.s32 " D4 "{%%a0,%%a1}, {%%b0}" C4 ";")
INSTRUCTION(s4_u4_k64, "mma.sync.aligned.m16n8k64.row.col.s32.s4.u4.s32 " D4 "{%%a0,%%a1,%%a2,%%a3}, {%%b0,%%b1}" C4 ";")
TEST(mma_of_nibbles_in_every_shape) {
    EXPECT(dense(s4_m8, 8, 32, S4, S4, S32) && dense(u4_k32, 16, 32, U4, U4, S32) && dense(s4_u4_k64, 16, 64, S4, U4, S32));
    return true;
}
INSTRUCTION(and_m8, "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc {%%d0,%%d1}, {%%a0}, {%%b0}, {%%c0,%%c1};")
INSTRUCTION(and_k128, "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc " D4 "{%%a0,%%a1}, {%%b0}" C4 ";")
INSTRUCTION(xor_k256, "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc " D4 "{%%a0,%%a1,%%a2,%%a3}, {%%b0,%%b1}" C4 ";")
TEST(mma_of_single_bits_in_every_shape) {
    EXPECT(dense(and_m8, 8, 128, B1, B1, S32) && dense(and_k128, 16, 128, B1, B1, S32));
    EXPECT(dense(xor_k256, 16, 256, B1, B1, S32, "x"));
    return true;
}
INSTRUCTION(wraps, "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 " D4 "{%%a0,%%a1}, {%%b0}" C4 ";")
INSTRUCTION(saturates, "mma.sync.aligned.m16n8k16.row.col.satfinite.s32.s8.s8.s32 " D4 "{%%a0,%%a1}, {%%b0}" C4 ";")
TEST(mma_of_integers_wraps_or_saturates) {
    for (int sign : {1, -1}) {
        Registers regs;
        for (int i = 0; i < 64; i++) regs.a.host[i] = sign == 1 ? 0x7f7f7f7fu : 0x81818181u;
        for (int i = 0; i < 32; i++) regs.b.host[i] = 0x7f7f7f7fu;
        const unsigned sum = (unsigned)(sign * 16 * 127 * 127), c = sign == 1 ? 0x7fffff00u : 0x80000100u;
        for (auto &x : regs.c.host) x = c;
        for (Instruction f : {wraps, saturates}) {
            regs.run(f);
            if (!finished()) return false;
            EXPECT(regs.d.down()[5] == (f == wraps ? c + sum : sign == 1 ? 0x7fffffffu : 0x80000000u));
        }
    }
    return true;
}

// ---- m8n8k4 with halves: four products at once, each of 4 lanes of the lower half of the warp and 4 of the upper

#define QUADS(layouts, types, d, c) "mma.sync.aligned.m8n8k4." layouts "." types " " d ", {%%a0,%%a1}, {%%b0,%%b1}, " c ";"
#define D8 "{%%d0,%%d1,%%d2,%%d3,%%d4,%%d5,%%d6,%%d7}"
#define C8 "{%%c0,%%c1,%%c2,%%c3,%%c4,%%c5,%%c6,%%c7}"
INSTRUCTION(quads_row_col, QUADS("row.col", "f32.f16.f16.f32", D8, C8))
INSTRUCTION(quads_col_row, QUADS("col.row", "f32.f16.f16.f32", D8, C8))
INSTRUCTION(quads_row_row, QUADS("row.row", "f16.f16.f16.f16", "{%%d0,%%d1,%%d2,%%d3}", "{%%c0,%%c1,%%c2,%%c3}"))
INSTRUCTION(quads_col_col, QUADS("col.col", "f32.f16.f16.f16", D8, "{%%c0,%%c1,%%c2,%%c3}"))
static Place quad_accumulator(Type t, int lane, int i) {
    if (t == F16) return {lane % 4 + lane / 16 * 4, i};
    return {(lane & 1) + (i & 2) + lane / 16 * 4, (i & 4) + (lane & 2) + (i & 1)};
}
static bool quads(Instruction f, bool a_by_columns, bool b_by_rows, Type ct, Type dt) {
    Matrices x(32, 32, 4, F16, F16); // four products of its diagonal blocks
    Registers regs;
    for (int l = 0; l < 32; l++) {
        const int block = l % 16 / 4 * 8, half = l / 16 * 4;
        for (int i = 0; i < 4; i++) {
            put(regs.a, i / 2, l, i % 2, F16, a_by_columns ? x.a[(block + i + half) * 4 + l % 4] : x.a[(block + l % 4 + half) * 4 + i]);
            put(regs.b, i / 2, l, i % 2, F16, b_by_rows ? x.b[l % 4 * 32 + block + i + half] : x.b[i * 32 + block + l % 4 + half]);
        }
        for (int i = 0; i < 8; i++) {
            const Place p = quad_accumulator(ct, l, i);
            put(regs.c, ct == F16 ? i / 2 : i, l, ct == F16 ? i % 2 : 0, ct, x.c[(block + p.row) * 32 + block + p.column]);
        }
    }
    regs.run(f);
    if (!finished()) return false;
    regs.d.down();
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 8; i++) {
            const Place p = quad_accumulator(dt, l, i);
            const int block = l % 16 / 4 * 8;
            const unsigned want = encode(dt, x.expected(block + p.row, block + p.column));
            EXPECT((dt == F16 ? regs.d.host[32 * (i / 2) + l] >> (16 * (i % 2)) & 0xffff : regs.d.host[32 * i + l]) == want);
        }
    return true;
}
TEST(mma_of_four_quads) {
    EXPECT(quads(quads_row_col, false, false, F32, F32) && quads(quads_col_row, true, true, F32, F32));
    EXPECT(quads(quads_row_row, false, true, F16, F16) && quads(quads_col_col, true, false, F16, F32));
    return true;
}

// ---- sparse A: of every four elements two are stored (of tf32 one of two, of nibbles two pairs of four)

// Which of the stored elements' places are in use, and the metadata bits of a row for it.
static uint64_t choose(Type t, int k, int row, std::vector<int> &columns) {
    uint64_t bits = 0;
    const int group = t == TF32 ? 2 : 4, unit = bits_of(t) == 4 ? 2 : 1;
    for (int q = 0; q < k / (group * unit); q++) {
        const int n = (int)(noise(row * 100 + q) % 6), first[6] = {0, 0, 0, 1, 1, 2}, second[6] = {1, 2, 3, 2, 3, 3};
        if (t == TF32) {
            columns.push_back(2 * q + n % 2);
            bits |= (uint64_t)(n % 2 ? 0xe : 0x4) << 4 * q;
            continue;
        }
        for (int which : {first[n], second[n]})
            for (int u = 0; u < unit; u++) columns.push_back((4 * q + which) * unit + u);
        bits |= (uint64_t)(first[n] | second[n] << 2) << 4 * q;
    }
    return bits;
}
static bool sparse(Instruction f, int k, int selector, Type at, Type bt, Type ct) {
    Matrices x(16, 8, k, at, bt);
    Registers regs;
    const int E = 32 / bits_of(at), wide = bits_of(at) >= 16;
    for (int row = 0; row < 16; row++) {
        std::vector<int> columns;
        const uint64_t bits = choose(at, k, row, columns);
        const int g = row % 8, high = row / 8, count = at == TF32 ? 2 * k : bits_of(at) == 4 ? k / 2 : k;
        unsigned *quad = &regs.e.host[4 * g];
        if (count == 16) quad[selector] |= (unsigned)bits << 16 * high;
        else if (count == 64) quad[high] = (unsigned)bits, quad[2 + high] = (unsigned)(bits >> 32);
        else if (wide) for (int h = 0; h < 2; h++) quad[2 * selector + h] |= (unsigned)(bits >> 16 * h & 0xffff) << 16 * high;
        else quad[2 * selector + high] = (unsigned)bits;
        std::vector<int> kept(k);
        for (int s = 0; s < k / 2; s++) {
            kept[columns[s]] = x.a[row * k + columns[s]];
            put(regs.a, s / (4 * E) * 2 + high, 4 * g + s / E % 4, s % E, at, kept[columns[s]]);
        }
        std::copy(kept.begin(), kept.end(), x.a.begin() + row * k);
    }
    put_b(regs, x, bt), put_accumulators(regs, x, ct);
    regs.run(f);
    return finished() && accumulators_are_right(regs, x, ct, "");
}
#define SPARSE(shape, types, operands, c, selector) "mma.sp.sync.aligned." shape ".row.col." types " " operands ", " c ", %%e0, " selector ";"
#define SMALL "{%%a0,%%a1}, {%%b0,%%b1}"
#define LARGE "{%%a0,%%a1,%%a2,%%a3}, {%%b0,%%b1,%%b2,%%b3}"
INSTRUCTION(sparse_f16_k16, SPARSE("m16n8k16", "f32.f16.f16.f32", D4 SMALL, "{%%c0,%%c1,%%c2,%%c3}", "0x2"))
INSTRUCTION(sparse_f16_k32, SPARSE("m16n8k32", "f16.f16.f16.f16", "{%%d0,%%d1}, " LARGE, "{%%c0,%%c1}", "0x1"))
INSTRUCTION(sparse_bf16_k16, SPARSE("m16n8k16", "f32.bf16.bf16.f32", D4 SMALL, "{%%c0,%%c1,%%c2,%%c3}", "0x3"))
INSTRUCTION(sparse_bf16_k32, SPARSE("m16n8k32", "f32.bf16.bf16.f32", D4 LARGE, "{%%c0,%%c1,%%c2,%%c3}", "0x0"))
INSTRUCTION(sparse_tf32_k8, SPARSE("m16n8k8", "f32.tf32.tf32.f32", D4 SMALL, "{%%c0,%%c1,%%c2,%%c3}", "0x1"))
INSTRUCTION(sparse_tf32_k16, SPARSE("m16n8k16", "f32.tf32.tf32.f32", D4 LARGE, "{%%c0,%%c1,%%c2,%%c3}", "0x1"))
TEST(sparse_mma_of_halves_and_tf32) {
    EXPECT(sparse(sparse_f16_k16, 16, 2, F16, F16, F32) && sparse(sparse_f16_k32, 32, 1, F16, F16, F16));
    EXPECT(sparse(sparse_bf16_k16, 16, 3, BF16, BF16, F32) && sparse(sparse_bf16_k32, 32, 0, BF16, BF16, F32));
    EXPECT(sparse(sparse_tf32_k8, 8, 1, TF32, TF32, F32) && sparse(sparse_tf32_k16, 16, 1, TF32, TF32, F32));
    return true;
}
INSTRUCTION(sparse_s8_k32, SPARSE("m16n8k32", "s32.s8.s8.s32", D4 SMALL, "{%%c0,%%c1,%%c2,%%c3}", "0x1"))
INSTRUCTION(sparse_u8_s8_k64, SPARSE("m16n8k64", "s32.u8.s8.s32", D4 LARGE, "{%%c0,%%c1,%%c2,%%c3}", "0x0"))
INSTRUCTION(sparse_s4_k64, SPARSE("m16n8k64", "s32.s4.s4.s32", D4 SMALL, "{%%c0,%%c1,%%c2,%%c3}", "0x0"))
INSTRUCTION(sparse_u4_k128, SPARSE("m16n8k128", "s32.u4.u4.s32", D4 LARGE, "{%%c0,%%c1,%%c2,%%c3}", "0x0"))
TEST(sparse_mma_of_integers) {
    EXPECT(sparse(sparse_s8_k32, 32, 1, S8, S8, S32) && sparse(sparse_u8_s8_k64, 64, 0, U8, S8, S32));
    EXPECT(sparse(sparse_s4_k64, 64, 0, S4, S4, S32) && sparse(sparse_u4_k128, 128, 0, U4, U4, S32));
    return true;
}

// ---- doubles, and turning a matrix round

__global__ void mma_of_doubles(const double *a, const double *b, const double *c, double *d) {
    const int l = threadIdx.x, g = l / 4, t = l % 4;
    double d0, d1;
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%4,%5};"
                 : "=d"(d0), "=d"(d1) : "d"(a[g * 4 + t]), "d"(b[t * 8 + g]), "d"(c[g * 8 + 2 * t]), "d"(c[g * 8 + 2 * t + 1]));
    d[g * 8 + 2 * t] = d0, d[g * 8 + 2 * t + 1] = d1;
}
TEST(mma_of_doubles) {
    Array<double> a(32, [](size_t i) { return uniform(i); }, 0), b(32, [](size_t i) { return uniform(i + 100) + 1e-12; }, 0);
    Array<double> c(64, [](size_t i) { return uniform(i + 200); }, 0), d(64);
    mma_of_doubles<<<1, 32>>>(a.device, b.device, c.device, d.device);
    if (!finished()) return false;
    return close(d.down(), [&](size_t i) { double s = c.host[i]; for (int x = 0; x < 4; x++) s = fma(a.host[i / 8 * 4 + x], b.host[x * 8 + i % 8], s); return s; }, 1e-15, 1e-15);
}
__global__ void turn(const unsigned *in, unsigned *out) {
    unsigned r;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(in[threadIdx.x]));
    out[threadIdx.x] = r;
}
TEST(movmatrix_transposes) {
    Array<unsigned> in(32, [](size_t i) { return (unsigned)(2 * i | (2 * i + 1) << 16); }, 0), out(32); // element n is n
    turn<<<1, 32>>>(in.device, out.device);
    if (!finished()) return false;
    return equal(out.down(), [](size_t i) { unsigned row = (unsigned)i / 4, column = i % 4 * 2; return column * 8 + row | (column * 8 + 8 + row) << 16; });
}
