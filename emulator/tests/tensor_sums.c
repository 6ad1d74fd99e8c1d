/* Compares the vector code of runtime/tensor_sums.c with the rule written out there, on numbers of every kind; and the rule
 * with results known from the publications that it is from. Prints what differs; exit code 1 when anything does. */
#include "tensor.h"

#include <stdio.h>

static u64 state = 1;
static u32 noise(void) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (u32)(state >> 33) ^ (u32)(state >> 40) << 24;
}

/* Bits of a float with `fraction` fraction and `exponent` exponent bits. Kinds: any bits, like ones, near zero, mostly zeros,
 * all exponents but no infinity or NaN, like ones with an infinity or NaN now and then. */
enum { KINDS = 6 };
static u32 number(int kind, u32 exponent, u32 fraction) {
    const u32 top = (1u << exponent) - 1, bias = top / 2, sign = (noise() & 1) << (exponent + fraction), f = noise() & ((1u << fraction) - 1);
    const u32 near = bias - 6 + noise() % 12;
    switch (kind) {
    case 0: return sign | noise() % (top + 1) << fraction | f;
    case 1: return sign | near << fraction | f;
    case 2: return sign | noise() % 4 << fraction | f;
    case 3: return noise() % 3 ? sign : sign | near << fraction | f;
    case 4: return sign | noise() % top << fraction | f;
    default: return sign | (noise() % 40 ? near : top) << fraction | (noise() % 3 ? f : 0);
    }
}
static u32 element(int type, int kind) {
    switch (type) {
    case ELEMENT_F16: return number(kind, 5, 10);
    case ELEMENT_BF16: return number(kind, 8, 7);
    case ELEMENT_E4M3: return number(kind, 4, 3);
    case ELEMENT_E5M2: return number(kind, 5, 2);
    default: return number(kind, 8, 23);
    }
}
static void fill(int type, int kind, u32 *words, u32 count) {
    const u32 bits = element_bits(type);
    for (u32 i = 0; i < count; i++) {
        words[i] = 0;
        for (u32 e = 0; e < 32 / bits; e++) words[i] |= element(type, kind) << (e * bits);
    }
}
static void read_side(int type, int kind, u32 k, struct side *s) {
    static u32 words[16][ROWS] __attribute__((aligned(64)));
    const u32 count = k * element_bits(type) / 32;
    fill(type, kind, (u32 *)words, count * ROWS);
    decode_floats(type, (const u32(*)[ROWS])words, count, s);
}

static int vectors_follow_the_rule(u32 architecture, int type, int accumulator, u32 k, int sparse) {
    static u32 c[8][ROWS] __attribute__((aligned(64))), want[8][ROWS];
    static struct side left, right;
    const struct sum_rule rule = sum_rule(architecture, type, accumulator, sparse);
    for (int round = 0; round < 36 * 2; round++) {
        const int kind = round % KINDS, other = round / KINDS % KINDS;
        read_side(type, kind, k, &left), read_side(type, kind, k, &right);
        for (u32 x = 0; x < k; x++)
            for (u32 i = 0; i < ROWS; i++) {
                if (x % 2 && round % 5 == 0) { /* sums that cancel */
                    left.value[x][i] = -left.value[x - 1][i], left.exponent[x][i] = left.exponent[x - 1][i];
                    right.value[x][i] = right.value[x - 1][i], right.exponent[x][i] = right.exponent[x - 1][i];
                }
                if (sparse && noise() % 2) left.value[x][i] = 0, left.exponent[x][i] = EXPONENT_ABSENT;
            }
        fill(accumulator == ELEMENT_F16 ? accumulator : ELEMENT_F32, other, (u32 *)c, 8 * ROWS);
        if (accumulator == ELEMENT_F16)
            for (u32 j = 0; j < 8; j++) for (u32 i = 0; i < ROWS; i++) c[j][i] &= 0xffff;
        memcpy(want, c, sizeof c);
        sum_floats(rule, &left, &right, k, 8, 8, c);
        sum_floats_by_the_rule(rule, &left, &right, k, 8, 8, want);
        for (u32 i = 0; i < 8 * ROWS; i++)
            if (c[i / ROWS][i % ROWS] != want[i / ROWS][i % ROWS]) {
                printf("sm_%u, element type %d, accumulator %d, k %u, numbers of kinds %d and %d: 0x%x, by the rule 0x%x\n", architecture, type, accumulator,
                       k, kind, other, c[i / ROWS][i % ROWS], want[i / ROWS][i % ROWS]);
                return 0;
            }
    }
    return 1;
}

/* One row and column: a[0] · b[0] + a[1] · b[1] + … + c, elements given by their bits. */
static float dot(struct sum_rule rule, int type, const u32 *a, const u32 *b, u32 k, float c) {
    static u32 words[2][16][ROWS] __attribute__((aligned(64))), d[8][ROWS] __attribute__((aligned(64)));
    static struct side sides[2];
    const u32 bits = element_bits(type), each = 32 / bits;
    for (u32 s = 0; s < 2; s++) {
        memset(words[s], 0, sizeof words[s]);
        for (u32 x = 0; x < k; x++) words[s][x / each][0] |= (s ? b : a)[x] << x % each * bits;
        decode_floats(type, (const u32(*)[ROWS])words[s], k / each, &sides[s]);
    }
    d[0][0] = rule.accumulator == ELEMENT_F16 ? f32_to_f16_s(c) : f2u(c);
    sum_floats(rule, &sides[0], &sides[1], k, 0, 8, d);
    return rule.accumulator == ELEMENT_F16 ? f16_to_f32_s(d[0][0]) : u2f(d[0][0]);
}
/* 1 · b[0] + 1 · b[1] + … + c in halves. */
static float sum(u32 architecture, const u32 *halves, u32 k, float c) {
    u32 ones[16];
    for (u32 x = 0; x < k; x++) ones[x] = 0x3c00;
    return dot(sum_rule(architecture, ELEMENT_F16, ELEMENT_F32, 0), ELEMENT_F16, ones, halves, k, c);
}
static int known_results(void) {
    const u32 threes[16] = {1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1}, minus[16] = {0x8001, 0x8001, 0x8001}, cancels[16] = {0x3c00, 0xbc00, 1}; /* 2^-24, 1 and -1 */
    int ok = 1;
#define KNOWN(text, got, want) if ((got) != (want)) ok = 0, printf("%s: %a, expected %a\n", text, (double)(got), (double)(want))
    KNOWN("results are cut, not rounded", sum(80, threes, 8, 1), 1 + 0x1p-23f);
    KNOWN("so are negative ones", sum(80, minus, 8, -1), -1 - 0x1p-23f);
    KNOWN("sm_80 has no place for 2^-24 next to 2", sum(80, threes, 8, 2), 2);
    KNOWN("sm_90 has", sum(90, threes, 16, 2), 2 + 0x1p-22f);
    KNOWN("sm_80 splits k16 and cuts twice", sum(80, threes, 16, 1), 1 + 0x1p-22f);
    KNOWN("sm_90 does not", sum(90, threes, 16, 1), 1 + 3 * 0x1p-23f);
    KNOWN("terms are aligned to the largest, whatever the sum", sum(80, cancels, 8, 0), 0x1p-24f);
    /* -8192 · 1024 - 0.5 - 0.25 - 0.125 + 2^23 shows the fraction bits: -0.5 with 24, -0.75 with 25 (as in the introduction of
     * Xie et al.); the exact sum is -0.875. */
    const u32 left[8] = {0xf000, 0xb800, 0xb400, 0xb000}, right[8] = {0x6400, 0x3c00, 0x3c00, 0x3c00};
#define HALVES(architecture, accumulator) dot(sum_rule(architecture, ELEMENT_F16, accumulator, 0), ELEMENT_F16, left, right, 8, 0x1p23f)
    KNOWN("sm_80 has 24 fraction bits", HALVES(80, ELEMENT_F32), -0.5);
    KNOWN("sm_89 has 24 too", HALVES(89, ELEMENT_F32), -0.5);
    KNOWN("sm_90 has 25", HALVES(90, ELEMENT_F32), -0.75);
    /* Li et al. ask whether subnormal numbers count, and how many products are one sum: 2^30 - 2^30 + 1 is 1 only if 1 is in a
     * later one. */
    const u32 first_half[16] = {0x7800, 0x7800, [8] = 0x3c00}, second_half[16] = {0x7800, 0xf800, [8] = 0x3c00};
    const u32 first_tf32[8] = {f2u(0x1p30f), f2u(0x1p30f), [4] = f2u(1)}, second_tf32[8] = {f2u(1), f2u(-1), [4] = f2u(1)}, tiny[8] = {0x0d80}, small_too[8] = {0x2b80};
#define WIDTH(architecture, type, a, b, k) dot(sum_rule(architecture, type, ELEMENT_F32, 0), type, a, b, k, 0)
    KNOWN("sm_80 adds 8 products of halves", WIDTH(80, ELEMENT_F16, first_half, second_half, 16), 1);
    KNOWN("sm_90 adds 16", WIDTH(90, ELEMENT_F16, first_half, second_half, 16), 0);
    KNOWN("sm_80 adds 4 products of tf32", WIDTH(80, ELEMENT_TF32, first_tf32, second_tf32, 8), 1);
    KNOWN("sm_90 adds 8", WIDTH(90, ELEMENT_TF32, first_tf32, second_tf32, 8), 0);
    KNOWN("a sum may be subnormal", WIDTH(80, ELEMENT_BF16, tiny, small_too, 8), 0x1p-140f);
    KNOWN("subnormal numbers count", sum(80, threes, 8, 0), 3 * 0x1p-24f);
    /* 8-bit floats: 13 fraction bits, in the sum and in its result. 0x38 is 1, 0x01 is 2^-9, 0x08 is 2^-6 of e4m3. */
    const u32 ones[32] = {0x38, 0x38, 0x38, 0x38, 0x08}, small[32] = {0x38, 0x01, 0x01, 0x01, 0x01};
#define E4M3(architecture, c) dot(sum_rule(architecture, ELEMENT_E4M3, ELEMENT_F32, 0), ELEMENT_E4M3, ones, small, 32, c)
    KNOWN("8-bit floats: what 13 bits hold stays", E4M3(90, 0), 1 + 3 * 0x1p-9f);
    KNOWN("8-bit floats: terms below the 13th bit are lost", E4M3(90, 31), 32 + 0x1p-8f);
    KNOWN("8-bit floats: so is an accumulator's end", E4M3(89, 1 + 0x1p-14f), 2 + 3 * 0x1p-9f);
    return ok;
}

/* Results of mma.sync.m16n8k32 with 8-bit floats, measured on an H200, 2026-11-22, by tools/tensor_bits: row 0 of A, column 0 of
 * B and the first element of C and of D. Each differs if C is not added last, or subnormal e4m3 does not become a normal half. */
static int bytes_become_halves_on_sm_90(void) {
    static const struct { int a, b, sums; u32 c, d; const char row[33], column[33]; } MEASURED[] = {
        {ELEMENT_E4M3, ELEMENT_E5M2, ELEMENT_F32, 0x8fca1d47, 0x42a57158, /* any_exponent */
         "\xbe\xcc\x53\x4e\xe7\x0b\x89\xb0\x20\x33\xd7\x2e\x0f\xe7\xca\x8a\xd3\xc8\xa6\x19\xc1\x03\x11\x48\x75\x5a\xdf\x0d\xf4\xd7\xc0\x84",
         "\x54\xc4\x21\xc4\x11\xd4\xec\x93\xe9\x82\xc6\x08\x10\x21\xac\x28\x9c\x94\x32\x21\x2a\x7b\xbd\x47\x89\x0a\x8d\x05\x1d\x26\x40\x50"},
        {ELEMENT_E4M3, ELEMENT_E4M3, ELEMENT_F16, 0x44ba, 0x644f, /* like_one */
         "\x2f\xd9\x4c\x4a\x49\xc2\x1e\xcb\x4f\x5c\xa4\x25\x32\xcf\xa2\x5e\xd1\xc0\x9f\xb4\x9d\xb9\x53\x4a\x36\xb7\xca\x2b\xbf\x5b\x1b\xc3",
         "\x4c\xb7\x2e\xa4\x58\xb6\xb4\xdd\x39\x2c\x47\x9c\x38\xdf\xcf\x5f\x2a\x21\xde\xaa\xc9\xb5\xdf\x2c\xad\x36\xdd\x38\x9f\xca\x3a\xdf"},
        {ELEMENT_E4M3, ELEMENT_E4M3, ELEMENT_F16, 0xd22, 0x9ffe, /* subnormal */
         "\x0c\x17\x98\x16\x11\x05\x09\x09\x19\x13\x06\x87\x9a\x0d\x03\x1f\x9b\x19\x89\x13\x0f\x8d\x83\x07\x81\x0a\x15\x93\x8e\x01\x86\x9f",
         "\x9c\x93\x8d\x14\x94\x84\x9c\x95\x81\x07\x89\x88\x04\x0f\x96\x00\x18\x8f\x0e\x07\x14\x83\x9f\x81\x83\x04\x85\x9d\x1d\x1c\x95\x02"},
        {ELEMENT_E4M3, ELEMENT_E4M3, ELEMENT_F16, 0xf942, 0x5400, /* huge */
         "\x46\xcc\xcf\x52\x5b\x5b\xf3\x6d\x5b\xcc\x70\x68\xc4\x4e\xec\xf5\x65\xba\xc8\x64\xd3\x62\xc0\xe4\x46\xf0\xc7\x62\x40\xc9\x6d\x47",
         "\x50\x59\x53\xbc\xc4\x6d\xf1\xd9\xb9\xcc\xb9\xc1\x4c\x65\x59\x61\x58\x5c\x38\x6c\x6f\x56\xea\xda\xc0\xf4\x41\xe1\x4c\xd9\xd9\xeb"},
        {ELEMENT_E5M2, ELEMENT_E5M2, ELEMENT_F16, 0x74a8, 0xfc00, /* any_bits */
         "\xc8\x74\x89\xe9\x34\x30\xe2\x71\x09\x83\xb5\x0c\xf0\xd3\x86\xf2\x40\x66\x47\xda\xa1\xf8\xa4\xd4\x10\x14\x8a\x2e\x4b\xe1\x1a\x02",
         "\xe3\x82\x22\xda\xb7\x5e\x48\xe5\x5c\xef\x47\x83\xb0\x26\xfa\x58\x64\x1e\x16\x63\xc9\x98\xc4\xec\x8c\x28\x83\xd3\x6a\xca\xb8\x8a"},
        {ELEMENT_E5M2, ELEMENT_E5M2, ELEMENT_F16, 0xa72, 0xa72, /* subnormal */
         "\x01\x85\x02\x88\x82\x8d\x8b\x82\x87\x8e\x8e\x84\x8e\x04\x82\x0d\x8d\x8f\x0a\x81\x01\x08\x84\x85\x8e\x0b\x82\x86\x87\x80\x81\x8a",
         "\x89\x09\x08\x0f\x85\x85\x08\x8f\x88\x07\x0e\x08\x88\x83\x0b\x05\x8e\x0e\x81\x00\x80\x8a\x88\x05\x03\x07\x07\x8d\x8d\x08\x09\x8f"},
    };
    int ok = 1;
    for (u32 n = 0; n < sizeof MEASURED / sizeof *MEASURED; n++) {
        u32 a[4 * 32] = {0}, b[2 * 32] = {0}, c[4 * 32] __attribute__((aligned(64))) = {MEASURED[n].c};
        for (u32 word = 0; word < 8; word++) {
            memcpy(&a[word / 4 * 2 * 32 + word % 4], &MEASURED[n].row[4 * word], 4);
            memcpy(&b[word / 4 * 32 + word % 4], &MEASURED[n].column[4 * word], 4);
        }
        rt_mma((struct mma){90, 16, 8, 32, MEASURED[n].a, MEASURED[n].b, MEASURED[n].sums, MEASURED[n].sums, 0}, a, b, c, c, NULL, 0);
        if (c[0] != MEASURED[n].d) ok = 0, printf("8-bit floats on sm_90, vector %u: 0x%x, a GPU's: 0x%x\n", n, c[0], MEASURED[n].d);
    }
    return ok;
}

static u64 word_of(int type, int value) { /* the bits of -2, -1, 0, 1 or 2 */
    const u32 magnitude = value < 0 ? (u32)-value : (u32)value, sign = value < 0;
    switch (type) {
    case ELEMENT_F16: return f32_to_f16_s((float)value);
    case ELEMENT_BF16: return f2u((float)value) >> 16;
    case ELEMENT_TF32: return f2u((float)value);
    case ELEMENT_E4M3: return sign << 7 | (magnitude == 2 ? 0x40 : magnitude ? 0x38 : 0);
    case ELEMENT_E5M2: return f32_to_f16_s((float)value) >> 8;
    default: return (u8)value;
    }
}
/* Small integers, whose sums are exact: every element of D has to be in its place. */
static int warpgroups_multiply(int type, int accumulator, u32 n, u32 flags) {
    enum { BYTES = 32 };
    static u32 a[64 * BYTES / 4], b[256 * BYTES / 4], registers[WARPGROUP][128 * 32] __attribute__((aligned(64)));
    static int left[64][BYTES], right[256][BYTES], d[64][256];
    u32 *const rows[WARPGROUP] = {registers[0], registers[1], registers[2], registers[3]};
    const u32 bits = element_bits(type), k = 8 * BYTES / bits, each = 32 / bits;
    memset(a, 0, sizeof a), memset(b, 0, sizeof b), memset(registers, 0, sizeof registers);
    for (u32 i = 0; i < 64; i++)
        for (u32 x = 0; x < k; x++) left[i][x] = (int)(noise() % 5) - 2, a[i * 8 + x / each] |= (u32)word_of(type, left[i][x]) << x % each * bits;
    for (u32 j = 0; j < n; j++)
        for (u32 x = 0; x < k; x++) right[j][x] = (int)(noise() % 5) - 2, b[j * 8 + x / each] |= (u32)word_of(type, right[j][x]) << x % each * bits;
    const struct mma how = {90, 64, n, k, type, type, accumulator, accumulator, flags};
    for (u32 round = 0; round < 2; round++) {
        multiply_warpgroup(how, a, b, rows);
        for (u32 i = 0; i < 64; i++)
            for (u32 j = 0; j < n; j++)
                for (u32 x = 0; x < k; x++) d[i][j] = (round || x ? d[i][j] : 0) + (flags & MMA_NEGATE_A ? -1 : 1) * left[i][x] * right[j][x];
    }
    for (u32 i = 0; i < 64; i++)
        for (u32 j = 0; j < n; j++) { /* PTX ISA, fragment of D: row 16w + 8h + g, column 8b + 2t + e */
            const u32 block = j / 8 * 2 + i % 16 / 8, lane = i % 8 * 4 + j % 8 / 2, *warp = registers[i / 16];
            const float got = accumulator == ELEMENT_F16 ? f16_to_f32_s(warp[32 * block + lane] >> 16 * (j % 2) & 0xffff)
                              : accumulator == ELEMENT_S32 ? (float)(i32)warp[32 * (2 * block + j % 2) + lane] : u2f(warp[32 * (2 * block + j % 2) + lane]);
            if (got != (float)d[i][j]) return printf("wgmma, element type %d, n %u: row %u, column %u is %g, expected %d\n", type, n, i, j, (double)got, d[i][j]), 0;
        }
    return 1;
}

int main(void) {
    static const struct { int type; u32 k; } forms[] = {{ELEMENT_F16, 8}, {ELEMENT_F16, 16}, {ELEMENT_BF16, 16}, {ELEMENT_TF32, 4}, {ELEMENT_TF32, 8}, {ELEMENT_E4M3, 32}, {ELEMENT_E5M2, 32}};
    int ok = known_results() & bytes_become_halves_on_sm_90();
    for (u32 i = 0; i < sizeof forms / sizeof *forms; i++)
        for (u32 architecture = 80; architecture <= 90; architecture += architecture == 80 ? 9 : 1)
            for (int sparse = 0; sparse < 2; sparse++) {
                ok &= vectors_follow_the_rule(architecture, forms[i].type, ELEMENT_F32, forms[i].k * (1 + sparse), sparse);
                if (forms[i].type != ELEMENT_BF16 && forms[i].type != ELEMENT_TF32)
                    ok &= vectors_follow_the_rule(architecture, forms[i].type, ELEMENT_F16, forms[i].k * (1 + sparse), sparse);
            }
    static const struct { int type, accumulator; } products[] = {{ELEMENT_F16, ELEMENT_F32}, {ELEMENT_F16, ELEMENT_F16}, {ELEMENT_BF16, ELEMENT_F32}, {ELEMENT_TF32, ELEMENT_F32}, {ELEMENT_E4M3, ELEMENT_F32}, {ELEMENT_E5M2, ELEMENT_F16}, {ELEMENT_S8, ELEMENT_S32}};
    for (u32 i = 0; i < sizeof products / sizeof *products; i++)
        for (u32 n = 8; n <= 256; n += 56 + n / 64 * 8) ok &= warpgroups_multiply(products[i].type, products[i].accumulator, n, products[i].type != ELEMENT_S8 && n > 8 ? MMA_NEGATE_A : 0);
    return !ok;
}
