/* The arithmetic of tensor cores: sums of products, bit for bit as published.
 *
 * For each element of D, the exact products of a group of k and the accumulator are aligned to the largest exponent
 * among them, truncated to a fixed number of fraction bits and added as integers. The sum is converted to the
 * accumulator's type: to f32 by truncating, to f16 by rounding to nearest even. This accumulator then enters the next
 * group. The exponent of a product is the sum of its factors' exponents, even if the product of their significands is 2
 * or more; that of a subnormal is the least of its type. A sum with a NaN, with infinities of both signs, or with zero
 * times infinity is the NaN 0x7fffffff (f16: 0x7fff).
 *
 * Sources. [1] Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ CS 7:e330, 2021: terms
 * are aligned and truncated without normalising in between; f32 results are truncated. [2] Li et al., "FTTN", arXiv
 * 2403.00232: extra bits
 * by architecture. [3] Xie et al., MMA-Sim (github.com/microsoft/MMA-Sim, mmasim/simulator): the numbers below, the
 * exponents and NaN above, checked there against each architecture's GPUs. [4] Khattak, Mikaitis, "Accurate Models of
 * NVIDIA Tensor Cores", arXiv 2512.07004: the same for A100 and H100.
 *
 * sm_90 has no instruction for mma.sync with 8-bit floats: ptxas 13.0 converts the elements to halves, uses two of f16
 * k16, the first with a zero accumulator, and adds C with another, rounded addition (tensor.c; read with nvdisasm. An
 * H200, driver 580.159.04, 2026-11-22: results have places below the 13 bits of sm_89).
 *
 * That H200 agrees with these rules in all 25600 words of each form and kind of numbers, including NaN
 * (tests/gpu/test_tensor_bits_on_a_gpu.py). Two rules come from its results: no term is aligned to an exponent below
 * LEAST_TOP, and a sum that truncation or rounding makes zero is +0.
 *
 * Two rules are unpublished and checked only on the H200, so for sm_90 alone: which products of a sparse instruction
 * form a group (here: those of as many stored elements), and the sign of a zero sum (here: +, as an integer has none). */

#include "tensor.h"

#include <math.h>

static const struct { u32 architecture, fraction_bits, group_bits; } RULES[] = {
    {90, 25, 256}, /* [3] 25 bits, and no splitting: k16 of halves and k8 of tf32 are one group; [4] H100 */
    {89, 24, 128}, /* [3] 24 bits; k16 of halves, k8 of tf32 and k32 of 8-bit floats are split in two */
    {80, 24, 128}, /* [3] 24 bits; k16 of halves and k8 of tf32 are split in two; [1], [4] A100: blocks of 8 and 4 */
};
#define LEAST_TOP -133 /* the least exponent that terms are aligned to; the H200 above fits -132 and less, not -131 */
#define FP8_FRACTION_BITS 13u /* [3] sm_89: fraction bits of sums of 8-bit floats, and of their f32 results */

struct sum_rule sum_rule(u32 architecture, int element, int accumulator, int sparse) {
    u32 i = 0;
    while (i + 1 < sizeof RULES / sizeof *RULES && architecture < RULES[i].architecture) i++;
    u32 bits = element_bits(element), group = RULES[i].group_bits / bits;
    return (struct sum_rule){bits == 8 ? FP8_FRACTION_BITS : RULES[i].fraction_bits, sparse ? 2 * group : group, accumulator, element};
}

/* ---- decoding ----------------------------------------------------------------------------------------------------- */

INLINE VU where(VI mask, VU a, VU b) { return ((VU)mask & a) | (~(VU)mask & b); }
INLINE VI largest(VI a, VI b) {
#ifdef EMU_AVX512
    return __builtin_ia32_pmaxsd512_mask(a, b, a, (u16)-1);
#elif W == 8
    return __builtin_ia32_pmaxsd256(a, b);
#else
    return (VI)where(a > b, (VU)a, (VU)b);
#endif
}
INLINE VF power(VI exponent) { return (VF)((VU)(exponent + 127) << 23); }

/* The significand of a number: 1 or more, but less where the type's exponent ends, and not 0 for infinities and NaN. */
INLINE VF significand_of(VF number, VI exponent) {
    const VU bits = (VU)number, normal = (bits & 0x807fffffu) | 0x3f800000u;
    const VI small = ((VI)(bits >> 23 & 255u) - 127 < exponent) & (exponent < EXPONENT_SPECIAL);
    const VF up = power((VI)where(small, (VU)-exponent, BU(0)));
    return (VF)where((VI)(bits << 1 == BU(0)), bits, where(small, (VU)(number * up), normal));
}
static void take_significands(struct side *s) {
    for (u32 x = 0; x < s->count; x++)
        for (u32 p = 0; p < ROWS; p += W) {
            VF *value = (VF *)&s->value[x][p];
            *value = significand_of(*value, *(const VI *)&s->exponent[x][p]);
        }
    s->ordinary = 0;
}

/* How an f32 holds a type's numbers: its bits without the sign, moved up to `magnitude`, times 2^up. From `special` on they
 * are infinite or NaN. */
struct format { i32 up, least; u32 special, infinity; };
static const struct format HALF = {112, -14, 31u << 23, 31u << 23}, SINGLE = {0, -126, 255u << 23, 255u << 23},
                           BYTE = {120, -6, 127u << 20, 0}; /* e4m3 has no infinities */
INLINE void split(VU sign, VU magnitude, const struct format f, VF *value, VI *exponent) {
    VF v = f.up ? (VF)magnitude * power(BI(f.up)) : (VF)magnitude;
    VI e = largest((VI)((VU)v >> 23) - 127, BI(f.least));
    e = (VI)where((VI)(magnitude == BU(0)), BU((u32)EXPONENT_ZERO), (VU)e);
    const VI special = (VI)magnitude >= (i32)f.special;
    const VU what = where((VI)(magnitude == BU(f.infinity)), BU(EXPONENT_INFINITE), BU(EXPONENT_NAN));
    *exponent = (VI)where(special, what, (VU)e);
    *value = (VF)((VU)v | sign);
}
INLINE void split_f16(VU h, VF *value, VI *exponent) { split((h & 0x8000u) << 16, (h & 0x7fffu) << 13, HALF, value, exponent); }
INLINE void split_f32(VU u, VF *value, VI *exponent) { split(u & 0x80000000u, u & 0x7fffffffu, SINGLE, value, exponent); }
INLINE void split_e4m3(VU b, VF *value, VI *exponent) { split((b & 0x80u) << 24, (b & 0x7fu) << 20, BYTE, value, exponent); }

#define EACH_PIECE(body)                                                                                               \
    for (u32 word = 0; word < count; word++)                                                                           \
        for (u32 p = 0; p < ROWS; p += W) {                                                                            \
            VU bits = *(const VU *)&words[word][p];                                                                    \
            body                                                                                                       \
        }
#define PUT_FLOAT(how, n, part)                                                                                        \
    {                                                                                                                  \
        VF value;                                                                                                      \
        VI exponent;                                                                                                   \
        how(part, &value, &exponent);                                                                                  \
        far |= (VI)((VU)(exponent + LARGEST_ORDINARY) > BU(2 * LARGEST_ORDINARY)) & (exponent != EXPONENT_ZERO);       \
        *(VF *)&s->value[n][p] = value;                                                                                \
        *(VI *)&s->exponent[n][p] = exponent;                                                                          \
    }
void decode_floats(int element, const u32 (*words)[ROWS], u32 count, struct side *s) {
    VI far = BI(0);
    switch (element) {
    case ELEMENT_F16: EACH_PIECE(PUT_FLOAT(split_f16, 2 * word, bits & 0xffffu) PUT_FLOAT(split_f16, 2 * word + 1, bits >> 16)) break;
    case ELEMENT_BF16: EACH_PIECE(PUT_FLOAT(split_f32, 2 * word, bits << 16) PUT_FLOAT(split_f32, 2 * word + 1, bits & 0xffff0000u)) break;
    case ELEMENT_TF32: EACH_PIECE(PUT_FLOAT(split_f32, word, bits & 0xffffe000u)) break; /* the low 13 bits are ignored [3] */
    case ELEMENT_E5M2: EACH_PIECE(for (u32 i = 0; i < 4; i++) PUT_FLOAT(split_f16, 4 * word + i, (bits >> 8 * i & 255u) << 8)) break;
    default: EACH_PIECE(for (u32 i = 0; i < 4; i++) PUT_FLOAT(split_e4m3, 4 * word + i, bits >> 8 * i & 255u))
    }
    s->count = count * 32 / element_bits(element);
    s->ordinary = !CMPI(4, far, BI(0));
    if (!s->ordinary) take_significands(s);
}

void decode_integers(int element, const u32 (*words)[ROWS], u32 count, struct side *s) {
    const u32 width = element_bits(element), up = 32 - width;
    const int is_signed = element == ELEMENT_S8 || element == ELEMENT_S4;
    if (element == ELEMENT_B1) {
        memcpy(s->integer, words, count * sizeof *words);
        return;
    }
    EACH_PIECE(for (u32 i = 0; i < 32 / width; i++) {
        VU top = bits << (up - width * i);
        *(VI *)&s->integer[word * (32 / width) + i][p] = is_signed ? (VI)top >> up : (VI)(top >> up);
    })
}

/* ---- floats ------------------------------------------------------------------------------------------------------- */

/* The sum of one group for one element of D, by the rule above. */
static u32 sum_of_group(struct sum_rule rule, const struct side *a, const struct side *b, u32 k0, u32 k1, u32 row, u32 column, u32 c) {
    VF values;
    VI exponents;
    if (rule.accumulator == ELEMENT_F16) split_f16(BU(c), &values, &exponents);
    else split_f32(BU(c), &values, &exponents);
    const double accumulator = values[0];
    const int a_scaled = a->ordinary, b_scaled = b->ordinary; /* their values are numbers, not significands */
    const i32 own = exponents[0];
    double special = own >= EXPONENT_NAN ? NAN : own >= EXPONENT_SPECIAL ? accumulator * INFINITY : 0;
    i32 top = own > LEAST_TOP ? own : LEAST_TOP;
    for (u32 x = k0; x < k1; x++) {
        const i32 e = a->exponent[x][row] + b->exponent[x][column];
        const double v = (double)a->value[x][row] * b->value[x][column];
        if (e >= EXPONENT_SPECIAL) special += e >= EXPONENT_NAN / 2 ? NAN : v * INFINITY;
        else if (e > top) top = e;
    }
    if (special != 0) {
        const u32 infinity = rule.accumulator == ELEMENT_F16 ? 0x7c00u : 0x7f800000u, sign = rule.accumulator == ELEMENT_F16 ? 0x8000u : 0x80000000u;
        return special != special ? sign - 1 : special < 0 ? infinity | sign : infinity;
    }
    const i32 last = top - (i32)rule.fraction_bits; /* exponent of the last place */
    i64 sum = (i64)ldexp(accumulator, -last);
    for (u32 x = k0; x < k1; x++)
        sum += (i64)ldexp((double)a->value[x][row] * b->value[x][column], (a_scaled ? 0 : a->exponent[x][row]) + (b_scaled ? 0 : b->exponent[x][column]) - last);
    const double exact = ldexp((double)sum, last);
    if (rule.accumulator == ELEMENT_F16) return (f64_to_f16_s(exact) & 0x7fff) ? f64_to_f16_s(exact) : 0;
    if (fabs(exact) < 0x1p-149) return 0; /* a sum truncated to zero is +0 */
    float cut = (float)exact;
    if (fabs((double)cut) > fabs(exact) && fabs(exact) < 0x1p128) cut = nextafterf(cut, 0);
    return element_bits(rule.element) == 8 ? f2u(cut) & ~0u << (23 - FP8_FRACTION_BITS) : f2u(cut);
}

void sum_floats_by_the_rule(struct sum_rule rule, const struct side *a, const struct side *b, u32 k, u32 first, u32 columns, u32 (*c)[ROWS]) {
    for (u32 x = 0; x < k; x += rule.group)
        for (u32 j = 0; j < columns; j++)
            for (u32 i = 0; i < ROWS; i++) c[j][i] = sum_of_group(rule, a, b, x, x + rule.group < k ? x + rule.group : k, i, first + j, c[j][i]);
}

/* The same for the rows of a vector, if no term is infinite or NaN and no result is subnormal or too large; otherwise
 * returns 0. Sums have up to 32 bits and a sign: 16 products below 2^27, with 25 fraction bits, and an accumulator
 * below 2^26. So they are stored in two halves. Ordinary numbers are scaled once, after their product, which f32 holds
 * exactly. */
INLINE int sum_of_group_v(const struct sum_rule rule, const int ordinary, const struct side *a, const struct side *b, u32 k0, u32 k1, u32 row, u32 column, VU *c) {
    VF value;
    VI own;
    if (rule.accumulator == ELEMENT_F16) split_f16(*c, &value, &own);
    else split_f32(*c, &value, &own);
    VI top = own;
    for (u32 x = k0; x < k1; x++) top = largest(top, *(const VI *)&a->exponent[x][row] + b->exponent[x][column]);
    if (UNLIKELY(CMPI(5, top, BI(EXPONENT_SPECIAL)))) return 0;
    const i32 scalable = ordinary ? (i32)rule.fraction_bits - 127 : LEAST_TOP;
    if (ordinary && UNLIKELY(CMPI(1, top, BI(scalable)) & CMPI(6, top, BI(EXPONENT_ZERO / 2)))) return 0;
    top = largest(top, BI(scalable));
    const VI last = top - (i32)rule.fraction_bits, least = last - 126, zero = last - 127;
    const VF scale = ordinary ? power(-last) : BF(1);
#define CUT(v, e) __builtin_convertvector((v) * (ordinary ? scale : (VF)((VU)(largest(e, least) - zero) << 23)), VI) /* a scale of 2^-126 truncates to zero */
    VI sums[2] = {CUT(ordinary ? value : significand_of(value, own), own), BI(0)};
    for (u32 h = 0; h < 2; h++) {
        u32 from = k0 + 8 * h, to = h == 0 && k1 > k0 + 8 ? k0 + 8 : k1;
        for (u32 x = from; x < to; x++)
            sums[h] += CUT(*(const VF *)&a->value[x][row] * b->value[x][column], *(const VI *)&a->exponent[x][row] + b->exponent[x][column]);
    }
    const VU total = (VU)sums[0] + (VU)sums[1];
    const VI negative = ((sums[0] & sums[1]) + ((sums[0] ^ sums[1]) >> 1)) >> 31; /* the sign of half the sum, which has 31 bits */
    const VU magnitude = (total ^ (VU)negative) - (VU)negative;
    VU rest = magnitude >> 24; /* all places beyond the first 24 */
    rest |= rest >> 1, rest |= rest >> 2, rest |= rest >> 4;
    VU bits = (VU)__builtin_convertvector(magnitude & ~rest, VF);
    const VI empty = (VI)(magnitude == BU(0));
    const VI field = (VI)(bits >> 23) + last;
    bits = (bits + ((VU)last << 23)) & ~(VU)empty;
    const VU sign = (VU)negative & 0x80000000u;
    if (rule.accumulator == ELEMENT_F16) { /* rounded to odd, so that two roundings equal one */
        const VU half = f32_to_f16_v((VF)(bits | sign | ((VU)((magnitude & rest) != BU(0)) & 1u)));
        *c = half & (VU)((half & 0x7fffu) != BU(0));
        return 1;
    }
    if (UNLIKELY(CMPU(6, ((VU)field - 1u) & ~(VU)empty, BU(253)))) return 0;
    if (element_bits(rule.element) == 8) bits &= ~0u << (23 - FP8_FRACTION_BITS);
    *c = bits | sign;
    return 1;
}

INLINE void sum_columns(const struct sum_rule rule, const int ordinary, const struct side *a, const struct side *b, u32 k, u32 first, u32 columns, u32 (*c)[ROWS]) {
    for (u32 x = 0; x < k; x += rule.group) {
        const u32 end = x + rule.group < k ? x + rule.group : k;
        for (u32 j = 0; j < columns; j++)
            for (u32 p = 0; p < ROWS; p += W)
                if (UNLIKELY(!sum_of_group_v(rule, ordinary, a, b, x, end, p, first + j, (VU *)&c[j][p])))
                    for (u32 i = p; i < p + W; i++) c[j][i] = sum_of_group(rule, a, b, x, end, i, first + j, c[j][i]);
    }
}
void sum_floats(struct sum_rule rule, struct side *a, struct side *b, u32 k, u32 first, u32 columns, u32 (*c)[ROWS]) {
    const int ordinary = a->ordinary && b->ordinary;
    if (!ordinary && a->ordinary) take_significands(a);
    if (!ordinary && b->ordinary) take_significands(b);
    if (!ordinary) sum_columns(rule, 0, a, b, k, first, columns, c);
    else if (rule.accumulator == ELEMENT_F16) sum_columns(rule, 1, a, b, k, first, columns, c);
    else sum_columns(rule, 1, a, b, k, first, columns, c);
}

/* ---- integers ----------------------------------------------------------------------------------------------------- */

#define EACH_COLUMN(term, finish)                                                                                      \
    for (u32 j = 0; j < columns; j++)                                                                                  \
        for (u32 p = 0; p < ROWS; p += W) {                                                                            \
            VI sum = BI(0);                                                                                            \
            for (u32 x = 0; x < k; x++) {                                                                              \
                const VI left = *(const VI *)&a->integer[x][p];                                                        \
                const i32 right = b->integer[x][first + j];                                                            \
                sum += term;                                                                                           \
            }                                                                                                          \
            VI *to = (VI *)&c[j][p];                                                                                   \
            finish                                                                                                     \
        }
/* Sums of products of up to 8 bits fit in 32 bits (k <= 128): only adding the accumulator can overflow. */
void sum_integers(const struct side *a, const struct side *b, u32 k, u32 first, u32 columns, u32 (*c)[ROWS], int saturate) {
    if (saturate) EACH_COLUMN(left * right, *to = addsat_v(sum, *to);)
    else EACH_COLUMN(left * right, *to = (VI)((VU)*to + (VU)sum);)
}
INLINE VI bits_set(VU x) {
    x -= x >> 1 & 0x55555555u;
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    return (VI)(((x + (x >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24);
}
void sum_bits(const struct side *a, const struct side *b, u32 k, u32 first, u32 columns, u32 (*c)[ROWS], int conjunction) {
    if (conjunction) EACH_COLUMN(bits_set((VU)(left & right)), *to = (VI)((VU)*to + (VU)sum);)
    else EACH_COLUMN(bits_set((VU)(left ^ right)), *to = (VI)((VU)*to + (VU)sum);)
}
