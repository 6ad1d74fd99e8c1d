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
    for (int round = 0; round < 36 * 8; round++) {
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

/* One row and column of halves: 1 · b[0] + 1 · b[1] + … + c. */
static float sum(u32 architecture, const u16 *halves, u32 k, float c) {
    static u32 a[8][ROWS] __attribute__((aligned(64))), b[8][ROWS] __attribute__((aligned(64))), d[8][ROWS] __attribute__((aligned(64)));
    static struct side left, right;
    for (u32 x = 0; x < k / 2; x++) a[x][0] = 0x3c003c00, b[x][0] = halves[2 * x] | (u32)halves[2 * x + 1] << 16;
    d[0][0] = f2u(c);
    decode_floats(ELEMENT_F16, (const u32(*)[ROWS])a, k / 2, &left), decode_floats(ELEMENT_F16, (const u32(*)[ROWS])b, k / 2, &right);
    sum_floats(sum_rule(architecture, ELEMENT_F16, ELEMENT_F32, 0), &left, &right, k, 0, 8, d);
    return u2f(d[0][0]);
}
static int known_results(void) {
    const u16 threes[16] = {1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1}, minus[16] = {0x8001, 0x8001, 0x8001}, cancels[16] = {0x3c00, 0xbc00, 1}; /* 2^-24, 1 and -1 */
    int ok = 1;
#define KNOWN(text, got, want) if ((got) != (want)) ok = 0, printf("%s: %a, expected %a\n", text, (double)(got), (double)(want))
    KNOWN("results are cut, not rounded", sum(80, threes, 8, 1), 1 + 0x1p-23f);
    KNOWN("so are negative ones", sum(80, minus, 8, -1), -1 - 0x1p-23f);
    KNOWN("sm_80 has no place for 2^-24 next to 2", sum(80, threes, 8, 2), 2);
    KNOWN("sm_90 has", sum(90, threes, 16, 2), 2 + 0x1p-22f);
    KNOWN("sm_80 splits k16 and cuts twice", sum(80, threes, 16, 1), 1 + 0x1p-22f);
    KNOWN("sm_90 does not", sum(90, threes, 16, 1), 1 + 3 * 0x1p-23f);
    KNOWN("terms are aligned to the largest, whatever the sum", sum(80, cancels, 8, 0), 0x1p-24f);
    return ok;
}

int main(void) {
    static const struct { int type; u32 k; } forms[] = {{ELEMENT_F16, 8}, {ELEMENT_F16, 16}, {ELEMENT_BF16, 16}, {ELEMENT_TF32, 4}, {ELEMENT_TF32, 8}, {ELEMENT_E4M3, 32}, {ELEMENT_E5M2, 32}};
    int ok = known_results();
    for (u32 i = 0; i < sizeof forms / sizeof *forms; i++)
        for (u32 architecture = 80; architecture <= 90; architecture += architecture == 80 ? 9 : 1)
            for (int sparse = 0; sparse < 2; sparse++) {
                ok &= vectors_follow_the_rule(architecture, forms[i].type, ELEMENT_F32, forms[i].k * (1 + sparse), sparse);
                if (forms[i].type != ELEMENT_BF16 && forms[i].type != ELEMENT_TF32)
                    ok &= vectors_follow_the_rule(architecture, forms[i].type, ELEMENT_F16, forms[i].k * (1 + sparse), sparse);
            }
    return !ok;
}
