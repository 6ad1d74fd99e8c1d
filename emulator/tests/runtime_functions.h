/* What runtime_functions.py's programs have in common: rows of operands, and results as text or as hashes.
 *
 * Theory of operation. A program is compiled once for each instruction set. It calls every function of the runtime's
 * headers on the same rows of 32 lanes, whatever the width W of its vectors, and prints a hash of all results by
 * function, or, for the function that is named as its argument, operands and results lane by lane. Operands are chosen
 * ones (where rounding, ranges and signs turn), every 16-bit pattern, and random bits. The upper half of a lane that holds a
 * 16-bit result does not count, nor which NaN a float result is: PTX leaves it open, and processors differ. */
#include "warp.h"
#include <stdio.h>

enum type { TYPE_f16, TYPE_bf16, TYPE_u16, TYPE_i16, TYPE_u32, TYPE_i32, TYPE_u64, TYPE_i64, TYPE_float, TYPE_double };
union row { u32 u[32]; i32 i[32]; float f[32]; u64 q[32]; i64 l[32]; double d[32]; };

struct test {
    const char *name, *base; /* tests of one base get the same operands and must give the same results */
    int count;               /* operands */
    enum type operands[4], result;
    void (*run)(const union row *in, union row *out);
};

#define LOAD(V, row, i) ({ V v_; memcpy(&v_, (const u8 *)&(row) + sizeof v_ * (i), sizeof v_); v_; })
#define STORE(row, i, value) ({ __auto_type v_ = value; memcpy((u8 *)(row) + sizeof v_ * (i), &v_, sizeof v_); })

/* ---- what is a macro for some instruction sets, or works on memory or masks ---------------------------------------- */

#define INTEGER_COMPARISONS(X) X(0) X(1) X(2) X(4) X(5) X(6)
#define FLOAT_COMPARISONS(X) X(0) X(17) X(18) X(4) X(12) X(29) X(30) X(3) X(7) X(8) X(9) X(10) X(5) X(6)
#define ROW(name) static void name(const union row *in, union row *out)
/* Each result is `a` where the comparison holds and `b` elsewhere: a test of both the mask and the selection. */
#define WHERE(name, COMPARE_, SELECT, V, S, pieces)                                                                    \
    ROW(name) { for (int i = 0; i < pieces; i++) { V a = LOAD(V, in[0], i), b = LOAD(V, in[1], i); STORE(out, i, SELECT(COMPARE_, (S)a, (S)b)); } }
#define WHERE_U(op) WHERE(where_u32_##op, CMPU(op, a, b), SELU, VU, VU, PIECES)
#define WHERE_I(op) WHERE(where_s32_##op, CMPI(op, a, b), SELU, VI, VU, PIECES)
#define WHERE_Q(op) WHERE(where_u64_##op, CMPQ(op, a, b), SELQ, VQ, VQ, 2 * PIECES)
#define WHERE_L(op) WHERE(where_s64_##op, CMPL(op, a, b), SELQ, VL, VQ, 2 * PIECES)
#define WHERE_F(op) WHERE(where_f32_##op, CMPF(op, a, b), SELF, VF, VF, PIECES)
#define WHERE_D(op) WHERE(where_f64_##op, CMPD(op, a, b), SELD, VD, VD, 2 * PIECES)
INTEGER_COMPARISONS(WHERE_U)
INTEGER_COMPARISONS(WHERE_I)
INTEGER_COMPARISONS(WHERE_Q)
INTEGER_COMPARISONS(WHERE_L)
FLOAT_COMPARISONS(WHERE_F)
FLOAT_COMPARISONS(WHERE_D)

/* A comparison's mask has no bits beyond its piece; MKQ cuts a row's mask as pieces follow each other. */
ROW(masks_32) {
    for (int i = 0; i < PIECES; i++) {
        u32 mask = CMPU(4, LOAD(VU, in[0], i) & 1, BU(0));
        for (int l = 0; l < W; l++) out->u[i * W + l] = (mask >> l & 1) | (mask >> W ? 256u : 0u);
    }
}
ROW(masks_64) {
    u32 m = in[0].u[0];
    for (int i = 0; i < 2 * PIECES; i++) STORE(out, i, SELQ(MKQ(m, i), LOAD(VQ, in[1], i), IOTAQ(i)));
}
ROW(logic) { /* all 256 functions of three bits */
    VU sum[PIECES] = {{0}};
#define LOGIC(t) for (int i = 0; i < PIECES; i++) sum[i] = sum[i] * 31 + lop3_v(LOAD(VU, in[0], i), LOAD(VU, in[1], i), LOAD(VU, in[2], i), t);
#define LOGIC4(t) LOGIC(t) LOGIC(t + 1) LOGIC(t + 2) LOGIC(t + 3)
#define LOGIC16(t) LOGIC4(t) LOGIC4(t + 4) LOGIC4(t + 8) LOGIC4(t + 12)
#define LOGIC64(t) LOGIC16(t) LOGIC16(t + 16) LOGIC16(t + 32) LOGIC16(t + 48)
    LOGIC64(0) LOGIC64(64) LOGIC64(128) LOGIC64(192)
    memcpy(out, sum, sizeof sum);
}
ROW(rotate_32) {
    for (int i = 0; i < PIECES; i++) { VU a = LOAD(VU, in[0], i); STORE(out, i, RORU(a, 8) * 3 + RORU(a, 16) * 5 + RORU(a, 31) * 7 + RORU(a, 0)); }
}
ROW(rotate_64) {
    for (int i = 0; i < 2 * PIECES; i++) { VQ a = LOAD(VQ, in[0], i); STORE(out, i, RORQ(a, 8) * 3 + RORQ(a, 32) * 5 + RORQ(a, 63) * 7 + RORQ(a, 0)); }
}
ROW(permute) {
    VU row[PIECES];
    memcpy(row, in, sizeof row);
    for (int i = 0; i < PIECES; i++) STORE(out, i, permute_row(row, LOAD(VU, in[1], i) & 31));
}
#define SHUFFLE(name, source_of)                                                                                       \
    ROW(name) {                                                                                                        \
        for (int i = 0; i < PIECES; i++) {                                                                             \
            VU source;                                                                                                 \
            u32 inside;                                                                                                \
            source_of(IOTA(i), LOAD(VU, in[0], i), LOAD(VU, in[1], i), &source, &inside);                   \
            STORE(out, i, source | SELU(inside, BU(256), BU(0)) | (inside >= 1ull << W ? BU(512) : BU(0)));            \
        }                                                                                                              \
    }
SHUFFLE(shuffle_up, shuffle_source_up)
SHUFFLE(shuffle_down, shuffle_source_down)
SHUFFLE(shuffle_bfly, shuffle_source_bfly)
SHUFFLE(shuffle_idx, shuffle_source_idx)
#define CARRY(name, f, ...)                                                                                            \
    ROW(name) { for (int l = 0; l < 32; l++) { u32 carry = 7; u64 r = f(__VA_ARGS__, in[3].u[l] & 1, &carry); out->q[l] = r * 3 + carry; } }
CARRY(carry_add_32, carry_add_u32, in[0].u[l], in[1].u[l])
CARRY(carry_sub_32, carry_sub_u32, in[0].u[l], in[1].u[l])
CARRY(carry_mad_lo_32, carry_mad_lo_u32, in[0].u[l], in[1].u[l], in[2].u[l])
CARRY(carry_mad_hi_32, carry_mad_hi_u32, in[0].u[l], in[1].u[l], in[2].u[l])
CARRY(carry_add_64, carry_add_u64, in[0].q[l], in[1].q[l])
CARRY(carry_sub_64, carry_sub_u64, in[0].q[l], in[1].q[l])
CARRY(carry_mad_lo_64, carry_mad_lo_u64, in[0].q[l], in[1].q[l], in[2].q[l])
CARRY(carry_mad_hi_64, carry_mad_hi_u64, in[0].q[l], in[1].q[l], in[2].q[l])
#define AFFINE(name, f, T, member)                                                                                     \
    ROW(name) { T base; i64 stride; f(in[0].member, in[1].u[0] | 1u << 31, &base, &stride); for (int l = 0; l < 32; l++) out->q[l] = base + (u64)stride * (u64)l; }
AFFINE(affine_32, affine_from_lanes_u32, u32, u)
AFFINE(affine_64, affine_from_lanes_u64, u64, q)
/* Four words each at the places of W lanes, out of 256 words. */
ROW(quads) {
    memset(out, 0, sizeof *out);
    for (int i = 0; i < PIECES; i++) {
        i32 at[W];
        u32 words[1024];
        for (int k = 0; k < 1024; k++) words[k] = in[1].u[k & 31] + (u32)k;
        for (int l = 0; l < W; l++) at[l] = (i32)(in[0].u[W * i + l] % 1000) * 4;
        VU x[4];
        gather_quads((const u8 *)words, at, &x[0], &x[1], &x[2], &x[3]);
        STORE(out, i, x[0] + x[1] * 3 + x[2] * 5 + x[3] * 7);
    }
}
ROW(absolute_32) { for (int i = 0; i < PIECES; i++) STORE(out, i, abs_i_v(LOAD(VI, in[0], i))); }
ROW(absolute_64) { for (int i = 0; i < 2 * PIECES; i++) STORE(out, i, abs_i_v(LOAD(VL, in[0], i))); }
ROW(absolute_32_s) { for (int l = 0; l < 32; l++) out->i[l] = abs_i_s(in[0].i[l]); }
ROW(absolute_64_s) { for (int l = 0; l < 32; l++) out->l[l] = abs_i_s(in[0].l[l]); }
ROW(class_32) {
    u32 m = 0;
    for (int i = 0; i < PIECES; i++) m |= lanes_f32(testp_normal_f32_s, LOAD(VF, in[0], i)) << (W * i);
    for (int l = 0; l < 32; l++) out->u[l] = m >> l & 1;
}
ROW(class_64) {
    u32 m = 0;
    for (int i = 0; i < 2 * PIECES; i++) m |= lanes_f64(testp_subnormal_f64_s, LOAD(VD, in[0], i)) << (W / 2 * i);
    for (int l = 0; l < 32; l++) out->u[l] = m >> l & 1;
}

/* Memory: 32 words or double words anywhere in 128 or 256 bytes, unaligned and overlapping, downwards too. Operands:
 * offsets, a mask, values. */
static u8 memory[1024] __attribute__((aligned(64)));
static void fill(const union row *from) { for (int k = 0; k < 1024; k++) memory[k] = (u8)(from->u[k & 31] >> (k >> 5 & 3) * 8) + (u8)k; }
static void hash_memory(union row *out) { for (int k = 0; k < 1024; k++) out->u[k & 31] = out->u[k & 31] * 31 + memory[k]; }
static VQ places(const union row *in, int i) { return (VQ)(LOAD(VQ, in[0], i) % 200) + (u64)memory + 300; }
#define PLACES places(in, 2 * i), places(in, 2 * i + 1)
#define MASKS MKQ(m, 2 * i), MKQ(m, 2 * i + 1)
#define PIECE_WISE(name, pieces, change, ...)                                                                          \
    ROW(name) {                                                                                                        \
        u32 m = in[1].u[0];                                                                                            \
        (void)m;                                                                                                       \
        memset(out, 0, sizeof *out);                                                                                   \
        fill(&in[2]);                                                                                                  \
        for (int i = 0; i < pieces; i++) { __VA_ARGS__; }                                                              \
        if (change) hash_memory(out);                                                                                  \
    }
#define NEAR ((LOAD(VU, in[1], i) & 255) - 128)
PIECE_WISE(gathered_32, PIECES, 0, STORE(out, i, gather32(memory + 300, NEAR, MK(m, i))))
PIECE_WISE(gathered_32q, PIECES, 0, STORE(out, i, gather32q((u8 *)0, PLACES, MASKS)))
PIECE_WISE(gathered_16q, PIECES, 0, STORE(out, i, gather16q((u8 *)0, PLACES, MASKS)))
PIECE_WISE(gathered_8q, PIECES, 0, STORE(out, i, gather8q((u8 *)0, PLACES, MASKS)))
PIECE_WISE(gathered_64q, 2 * PIECES, 0, STORE(out, i, gather64q((u8 *)0, places(in, i), MKQ(m, i))))
PIECE_WISE(stored_32, PIECES, 1, store32(memory + 3 + 4 * W * i, LOAD(VU, in[1], i), MK(m, i)))
PIECE_WISE(stored_64, 2 * PIECES, 1, store64(memory + 3 + 4 * W * i, LOAD(VQ, in[0], i), MKQ(m, i)))
PIECE_WISE(scattered_32, PIECES, 1, scatter32(memory + 300, NEAR, LOAD(VU, in[2], i), MK(m, i)))
PIECE_WISE(scattered_32q, PIECES, 1, scatter32q((u8 *)0, PLACES, LOAD(VU, in[2], i), MASKS))
PIECE_WISE(scattered_16q, PIECES, 1, scatter16q((u8 *)0, PLACES, LOAD(VU, in[2], i), MASKS))
PIECE_WISE(scattered_8q, PIECES, 1, scatter8q((u8 *)0, PLACES, LOAD(VU, in[2], i), MASKS))
PIECE_WISE(scattered_64q, 2 * PIECES, 1, scatter64q((u8 *)0, places(in, i), LOAD(VQ, in[0], i) * 3, MKQ(m, i)))

#define U TYPE_u32
#define Q TYPE_u64
#define BY_HAND(name, count, result, ...) {#name, #name, count, {__VA_ARGS__}, result, name},
#define SAME_AS(name, base, count, result, ...) {#name, #base, count, {__VA_ARGS__}, result, name},
#define OF_U(op) BY_HAND(where_u32_##op, 2, U, U, U)
#define OF_I(op) BY_HAND(where_s32_##op, 2, TYPE_i32, TYPE_i32, TYPE_i32)
#define OF_Q(op) BY_HAND(where_u64_##op, 2, Q, Q, Q)
#define OF_L(op) BY_HAND(where_s64_##op, 2, TYPE_i64, TYPE_i64, TYPE_i64)
#define OF_F(op) BY_HAND(where_f32_##op, 2, TYPE_float, TYPE_float, TYPE_float)
#define OF_D(op) BY_HAND(where_f64_##op, 2, TYPE_double, TYPE_double, TYPE_double)
#define MEMORY(name, result) BY_HAND(name, 3, result, Q, U, U)
#define CARRIED(name, T) BY_HAND(name, 4, Q, T, T, T, U)
#define CARRIES_OF(bits, T)                                                                                            \
    CARRIED(carry_add_##bits, T) CARRIED(carry_sub_##bits, T) CARRIED(carry_mad_lo_##bits, T) CARRIED(carry_mad_hi_##bits, T)
#define TESTS_BY_HAND                                                                                                  \
    INTEGER_COMPARISONS(OF_U) INTEGER_COMPARISONS(OF_I) INTEGER_COMPARISONS(OF_Q) INTEGER_COMPARISONS(OF_L)            \
    FLOAT_COMPARISONS(OF_F) FLOAT_COMPARISONS(OF_D)                                                                    \
    BY_HAND(masks_32, 1, U, U) BY_HAND(masks_64, 2, Q, U, Q) BY_HAND(logic, 3, U, U, U, U)                             \
    BY_HAND(rotate_32, 1, U, U) BY_HAND(rotate_64, 1, Q, Q) BY_HAND(permute, 2, U, U, U)                               \
    BY_HAND(shuffle_up, 2, U, U, U) BY_HAND(shuffle_down, 2, U, U, U)                                                  \
    BY_HAND(shuffle_bfly, 2, U, U, U) BY_HAND(shuffle_idx, 2, U, U, U)                                                 \
    CARRIES_OF(32, U) CARRIES_OF(64, Q) BY_HAND(affine_32, 2, Q, U, U) BY_HAND(affine_64, 2, Q, Q, U)                        \
    BY_HAND(quads, 2, U, U, U)                                                                                         \
    BY_HAND(absolute_32, 1, TYPE_i32, TYPE_i32) SAME_AS(absolute_32_s, absolute_32, 1, TYPE_i32, TYPE_i32)             \
    BY_HAND(absolute_64, 1, TYPE_i64, TYPE_i64) SAME_AS(absolute_64_s, absolute_64, 1, TYPE_i64, TYPE_i64)             \
    BY_HAND(class_32, 1, U, TYPE_float) BY_HAND(class_64, 1, U, TYPE_double)                                           \
    MEMORY(gathered_32, U) MEMORY(gathered_32q, U) MEMORY(gathered_16q, U) MEMORY(gathered_8q, U)                      \
    MEMORY(gathered_64q, Q) MEMORY(stored_32, U) MEMORY(stored_64, U) MEMORY(scattered_32, U)                          \
    MEMORY(scattered_32q, U) MEMORY(scattered_16q, U) MEMORY(scattered_8q, U) MEMORY(scattered_64q, U)

/* ---- operands ------------------------------------------------------------------------------------------------------- */

static const double turning_points[] = {
    0, 1, 0.5, 1.5, 2.5, 3.5, 1 + 0x1p-23, 1 - 0x1p-24, 1 + 0x1p-52, 0.3, 2, 3, 7, 10, 100, 126, 126.5, 127, 127.5, 127.99999, 128, 129,
    149, 149.5, 150, 150.5, 151, 199, 200, 201, 255, 255.5, 256, 1000, 2047.5, 2048, 2049, 4097, 32766.5, 32767, 32767.5, 32768, 65504, 65519,
    65519.996, 65520, 65535, 65535.5, 65536, 8388607.5, 8388608, 16777215, 16777216, 2147483520, 2147483647, 2147483647.5, 2147483648.0,
    2147483904.0, 4294967040.0, 4294967295.0, 4294967295.5, 4294967296.0, 9223371487098961920.0, 9223372036854774784.0, 9223372036854775808.0,
    18446742974197923840.0, 18446744073709549568.0, 18446744073709551616.0, 1e10, 1e30, 0x1p127, 0x1.fffffep127, 0x1.ffffffp127, 0x1p128,
    1e300, 0x1.fffffffffffffp1023, 0x1p-14, 0x1.ffcp-15, 0x1p-24, 0x1p-25, 0x1.8p-25, 0x1.8p-24, 0x1p-26, 1e-10, 0x1p-126,
    0x1.fffffcp-127, 0x1p-127, 0x1p-133, 0x1p-134, 0x1.8p-134, 0x1p-149, 0x1p-150, 0x1.000002p-150, 0x1p-1022, 0x0.fffffffffffffp-1022,
    0x1p-1074, __builtin_inf(), __builtin_nan("")};
static const u32 odd_floats[] = {0x7f800001u, 0xff800001u, 0x7fa12345u, 0x7fffffffu, 0xffffffffu, 0x7fc00000u, 0xffc00123u}; /* NaNs */
static const u64 odd_doubles[] = {0x7ff0000000000001ull, 0xfff0000000000001ull, 0x7ff7ffffffffffffull, 0x7fffffffffffffffull, 0xffffffffffffffffull};
static const u64 integers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 24, 30, 31, 32, 33, 47, 62, 63, 64, 65, 127, 128, 129, 254, 255, 256, 257, 288, 320, 511,
    0x7ffe, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff, 0x10000, 0x7fffff, 0x800000, 0xffffff, 0x1000000, 0x1fffffff, 0x20000000, 0x40000000, 0x7ffffffe, 0x7fffffff,
    0x80000000, 0x80000001, 0xaaaaaaaa, 0xcccccccc, 0xf0f0f0f0, 0xffffff80, 0xffff8000, 0xfffffffe, 0xffffffff, 0x100000000, 0x100000001,
    0x7fffffff80000000, 0x7ffffffffffffffe, 0x7fffffffffffffff, 0x8000000000000000, 0x8000000000000001, 0xffffffff00000000, 0xfffffffffffffffe, 0xffffffffffffffff};
#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static u64 state;
static u64 random_bits(void) { state ^= state << 13, state ^= state >> 7, state ^= state << 17; return state; }

static u64 chosen(enum type type, u64 n) {
    u64 sign = n & 1;
    n >>= 1;
    if (type == TYPE_float) {
        n %= LENGTH(turning_points) + LENGTH(odd_floats);
        float value = n < LENGTH(turning_points) ? (float)turning_points[n] : 0;
        return n < LENGTH(turning_points) ? f2u(sign ? -value : value) : odd_floats[n - LENGTH(turning_points)];
    }
    if (type == TYPE_double) {
        n %= LENGTH(turning_points) + LENGTH(odd_doubles);
        return n < LENGTH(turning_points) ? d2q(sign ? -turning_points[n] : turning_points[n]) : odd_doubles[n - LENGTH(turning_points)];
    }
    if (type == TYPE_f16) return f64_to_f16_s(turning_points[n % LENGTH(turning_points)]) | sign << 15;
    if (type == TYPE_bf16) return f64_to_bf16_s(turning_points[n % LENGTH(turning_points)]) | sign << 15;
    return integers[n % LENGTH(integers)];
}
/* Round n of an operand: the 16-bit patterns first, as a number and as its upper bits; then a mixture. */
static u64 operand(enum type type, u64 n) {
    int wide = type == TYPE_u64 || type == TYPE_i64 || type == TYPE_double;
    u64 bits = random_bits();
    if (type == TYPE_float && n < 65536) return n << 16 | (bits & (bits >> 40 & 1 ? 0xffff : 0));
    if (type == TYPE_double && n < 65536) return n << 48 | (bits >> 16 & (bits & 1 ? ~0ull >> 16 : 0));
    if (n < 65536) return n;
    switch (bits >> 61) {
    case 0: case 1: case 2: return chosen(type, bits & 0xffffff);
    case 3: /* near 1, where sums and products do not overflow */
        if (type == TYPE_float) return (bits & 0x807fffffu) | (u32)(117 + (bits >> 32) % 20) << 23;
        if (type == TYPE_double) return (bits & 0x800fffffffffffffull) | (1013 + (bits >> 52 & 511) % 20) << 52;
        return bits & 63;
    default: return wide ? bits * 0x9e3779b97f4a7c15ull : (u32)bits;
    }
}

static void set(union row *row, enum type type, int lane, u64 bits) {
    if (type == TYPE_u64 || type == TYPE_i64 || type == TYPE_double) row->q[lane] = bits;
    else if (type == TYPE_f16) row->f[lane] = f16_to_f32_s((u16)bits); /* a half in an f32 */
    else if (type == TYPE_bf16) row->f[lane] = bf16_to_f32_s((u16)bits);
    else row->u[lane] = type == TYPE_u16 ? (u16)bits : type == TYPE_i16 ? (u32)(i16)bits : (u32)bits;
}
static u64 get(const union row *row, enum type type, int lane) {
    if (type == TYPE_float) return row->f[lane] != row->f[lane] ? 0x7fffffffu : row->u[lane];
    if (type == TYPE_double) return row->d[lane] != row->d[lane] ? 0x7fffffffffffffffull : row->q[lane];
    return type == TYPE_u64 || type == TYPE_i64 ? row->q[lane] : type == TYPE_u16 || type == TYPE_i16 ? row->u[lane] & 0xffff : row->u[lane];
}

#define UNARY_ROUNDS (65536 + 4096)
#define MORE_ROUNDS 16384

static void report(const struct test *test, const char *wanted) {
    int printing = wanted && !strcmp(test->name, wanted);
    if (wanted && !printing) return;
    u64 hash = 14695981039346656037ull;
    state = 88172645463325252ull;
    for (const char *c = test->base; *c; c++) state = (state ^ (u64)*c) * 1099511628211ull;
    u64 first = test->count == 1 ? 0 : 65536, rounds = first + (test->count == 1 ? UNARY_ROUNDS : MORE_ROUNDS);
    for (u64 n = first; n < rounds; n += 32) {
        union row in[4], out;
        memset(&out, 0, sizeof out);
        for (int k = 0; k < test->count; k++)
            for (int l = 0; l < 32; l++) set(&in[k], test->operands[k], l, operand(test->operands[k], n + (u64)l));
        test->run(in, &out);
        for (int l = 0; l < 32; l++) {
            u64 result = get(&out, test->result, l);
            hash = (hash ^ result) * 1099511628211ull;
            if (!printing) continue;
            for (int k = 0; k < test->count; k++) printf("%016llx ", (unsigned long long)(test->operands[k] == TYPE_u64 || test->operands[k] == TYPE_i64 || test->operands[k] == TYPE_double ? in[k].q[l] : in[k].u[l]));
            printf("-> %llx\n", (unsigned long long)result);
        }
    }
    if (!printing) printf("%s %s %016llx\n", test->name, test->base, (unsigned long long)hash);
}

static const struct test tests[];
static const size_t test_count;
int main(int count, char **words) {
    for (size_t i = 0; i < test_count; i++) report(&tests[i], count > 1 ? words[1] : NULL);
    return 0;
}
