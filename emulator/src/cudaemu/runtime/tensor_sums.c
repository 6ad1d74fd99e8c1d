/* The arithmetic of tensor cores: sums of products, bit for bit as published.
 *
 * For each element of D, the exact products of a group of k and the accumulator are aligned to the largest exponent
 * among them, truncated to a fixed number of fraction bits and added as integers. The sum is converted to the
 * accumulator's type: to f32 by truncating, to f16 by rounding to nearest even. This accumulator then enters the next
 * group. The exponent of a product is the sum of its factors' exponents, even if the product of their significands is 2
 * or more. A subnormal factor has the smallest exponent of its type. A sum with a NaN, with infinities of both signs,
 * or with zero times infinity is the NaN 0x7fffffff (f16: 0x7fff).
 *
 * Sources. [1] Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ CS 7:e330, 2021: terms
 * are aligned and truncated without normalising in between; f32 results are truncated. [2] Li et al., "FTTN", arXiv
 * 2403.00232: extra bits by architecture. [3] Xie et al., MMA-Sim (github.com/microsoft/MMA-Sim, mmasim/simulator): the numbers below, the
 * exponents and NaN above, checked there against each architecture's GPUs. [4] Khattak, Mikaitis, "Accurate Models of
 * NVIDIA Tensor Cores", arXiv 2512.07004, and their models (github.com/north-numerical-computing/MATLAB-tensor-core,
 * models): the same for A100, Ada and H100.
 *
 * wgmma ([3] WGMMASim, [4] H100TC): 25 fraction bits, all of an instruction's k in one group; 8-bit floats have 13, in f32
 * results too.
 *
 * sm_90 has no instruction for mma.sync with 8-bit floats. ptxas 13.0 converts the elements to halves, so that
 * subnormal elements of e4m3 become normal, and uses two instructions for halves: the first with a zero accumulator and the
 * lower two elements of each word, the second with the upper two. Then it adds C with a rounded addition (tensor.c). Its
 * code, by nvdisasm: F2FP.F16.E4M3.UNPACK_B, HMMA.16816.F16 (or .F32; for k16 HMMA.1688) twice, HADD2 (FADD). Measured on an
 * H200, 2026-11-22, tools/tensor_bits.
 *
 * That H200 agrees with these rules in all 25600 words of each form and kind of numbers, including NaN
 * (tests/gpu/test_tensor_bits_on_a_gpu.py). Two rules come from its results: no term is aligned to an exponent below
 * LEAST_TOP, and a sum that truncation or rounding makes zero is +0.
 *
 * Two rules are unpublished and checked only on the H200, so only for sm_90: which products of a sparse instruction form a
 * group (here: those of the same number of stored elements), and the sign of a zero sum (here: +, because an integer zero
 * has no sign). */

#include "tensor_floats.h"

static const struct { u32 architecture, fraction_bits, group_bits; } RULES[] = {
    {90, 25, 256}, /* [3] 25 bits, and no splitting: k16 of halves and k8 of tf32 are one group; [4] H100 */
    {89, 24, 128}, /* [3] 24 bits; k16 of halves, k8 of tf32 and k32 of 8-bit floats are split in two */
    {80, 24, 128}, /* [3] 24 bits; k16 of halves and k8 of tf32 are split in two; [1], [4] A100: blocks of 8 and 4 */
};
#define LEAST_TOP -133 /* [4] H100TC: the least exponent that terms are aligned to; the H200 above fits -132 and less, not -131 */
#define FP8_FRACTION_BITS 13u /* [3], [4] sm_89 and wgmma: fraction bits of sums of 8-bit floats, and of their f32 results */

struct sum_rule sum_rule(u32 architecture, int element, int accumulator, int sparse) {
    u32 i = 0;
    while (i + 1 < sizeof RULES / sizeof *RULES && architecture < RULES[i].architecture) i++;
    u32 bits = element_bits(element), group = RULES[i].group_bits / bits;
    return (struct sum_rule){bits == 8 ? FP8_FRACTION_BITS : RULES[i].fraction_bits, sparse ? 2 * group : group, accumulator, element};
}

/* ---- decoding ----------------------------------------------------------------------------------------------------- */

static void take_significands(struct side *s) {
    for (u32 x = 0; x < s->count; x++)
        for (u32 p = 0; p < ROWS; p += W) {
            VF *value = (VF *)&s->value[x][p];
            *value = significand_of(*value, *(const VI *)&s->exponent[x][p]);
        }
    s->ordinary = 0;
}

static VU half_of(int element, VU byte) {
    if (element == ELEMENT_E5M2) return byte << 8;
    const VU magnitude = byte & 0x7fu, half = f32_to_f16_v(widen(magnitude << 20, BYTE, BY_SUBTRACTING));
    return where((VI)(magnitude == BU(0x7f)), BU(0x7fff), half) | (byte & 0x80u) << 8;
}
void bytes_to_halves(int element, u32 (*words)[ROWS], u32 count) {
    for (u32 n = 0; n < count; n++)
        for (u32 p = 0; p < ROWS; p += W) {
            const VU bytes = *(const VU *)&words[n][p];
#define PAIR(at) (half_of(element, bytes >> (at) & 255u) | half_of(element, bytes >> (at + 8) & 255u) << 16)
            *(VU *)&words[n][p] = PAIR(0), *(VU *)&words[count + n][p] = PAIR(16);
        }
}

#define EACH_PIECE(body)                                                                                               \
    for (u32 word = 0; word < count; word++)                                                                           \
        for (u32 p = 0; p < ROWS; p += W) {                                                                            \
            VU bits = *(const VU *)&words[word][p];                                                                    \
            body                                                                                                       \
        }
#define PUT_FLOAT(parts, f, n)                                                                                         \
    {                                                                                                                  \
        VF value;                                                                                                      \
        VI exponent;                                                                                                   \
        split(parts, BY_SUBTRACTING, &value, &exponent);                                                                               \
        unusual |= is_unusual(value, exponent, f);                                                                     \
        *(VF *)&s->value[n][p] = value;                                                                                \
        *(VI *)&s->exponent[n][p] = exponent;                                                                          \
    }
void decode_floats(int element, const u32 (*words)[ROWS], u32 count, struct side *s) {
    VI unusual = BI(0);
    switch (element) {
    case ELEMENT_F16: EACH_PIECE(PUT_FLOAT(F16_PARTS(bits), HALF, 2 * word) PUT_FLOAT(F16_PARTS(bits >> 16), HALF, 2 * word + 1)) break;
    case ELEMENT_BF16: EACH_PIECE(PUT_FLOAT(F32_PARTS(bits << 16), SINGLE, 2 * word) PUT_FLOAT(F32_PARTS(bits & 0xffff0000u), SINGLE, 2 * word + 1)) break;
    case ELEMENT_TF32: EACH_PIECE(PUT_FLOAT(F32_PARTS(bits & 0xffffe000u), SINGLE, word)) break; /* the low 13 bits are ignored [3] */
    case ELEMENT_E5M2: EACH_PIECE(for (u32 i = 0; i < 4; i++) PUT_FLOAT(F16_PARTS((bits >> 8 * i & 255u) << 8), HALF, 4 * word + i)) break;
    default: EACH_PIECE(for (u32 i = 0; i < 4; i++) PUT_FLOAT(E4M3_PARTS(bits >> 8 * i), BYTE, 4 * word + i))
    }
    s->count = count * 32 / element_bits(element);
    s->ordinary = !CMPI(4, unusual, BI(0));
    if (s->ordinary) return;
    const struct format f = element == ELEMENT_E4M3 ? BYTE : element == ELEMENT_F16 || element == ELEMENT_E5M2 ? HALF : SINGLE;
    for (u32 x = 0; x < s->count; x++)
        for (u32 p = 0; p < ROWS; p += W) {
            VI *exponent = (VI *)&s->exponent[x][p];
            *exponent = mark_special(*(const VF *)&s->value[x][p], *exponent, f);
        }
    take_significands(s);
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

INLINE struct format split_sum(struct sum_rule rule, VU c, VF *value, VI *exponent) {
    if (rule.accumulator == ELEMENT_F16) return split(F16_PARTS(c), BY_MULTIPLYING, value, exponent), HALF;
    return split(F32_PARTS(c), BY_MULTIPLYING, value, exponent), SINGLE;
}

/* The sum of one group for one element of D, by the rule above. */
static u32 sum_of_group(struct sum_rule rule, const struct side *a, const struct side *b, u32 k0, u32 k1, u32 row, u32 column, u32 c) {
    VF values;
    VI exponents;
    const struct format f = split_sum(rule, BU(c), &values, &exponents);
    const double accumulator = values[0];
    const i32 own = mark_special(values, exponents, f)[0];
    const int a_scaled = a->ordinary, b_scaled = b->ordinary; /* their values are numbers, not significands */
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

#define EXPONENTS(x) (*(const VI *)&a->exponent[x][row] + b->exponent[x][column])
#define PRODUCTS(x) (*(const VF *)&a->value[x][row] * b->value[x][column])
/* Sums have up to 32 bits and a sign: 16 products below 2^27, with 25 fraction bits, and an accumulator below 2^26. So they
 * are added up in two halves, each of 8 products. */
#define EACH_HALF(k0, k1) for (u32 h = 0, x = k0; h < 2; h++) for (; x < (h == 0 && k1 > k0 + 8 ? k0 + 8 : k1); x++)

/* A sum as f32, truncated. */
INLINE VU toward_zero(VI sum) {
#ifdef EMU_AVX512
    return (VU)__builtin_ia32_cvtdq2ps512_mask(sum, BF(0), (u16)-1, 8 | 3);
#else
    const VU sign = (VU)(sum >> 31), magnitude = ((VU)sum ^ sign) - sign;
    VU rest = magnitude >> 24; /* all places beyond the first 24 */
    rest |= rest >> 1, rest |= rest >> 2, rest |= rest >> 4;
    return (VU)__builtin_convertvector((VI)(magnitude & ~rest), VF) | (sign & 0x80000000u);
#endif
}
/* `bits` of f32 as a half; `rest` is not 0 where the sum has further digits. */
INLINE VU round_to_f16(VU bits, VU rest) {
    const VU half = f32_to_f16_v((VF)(bits | ((VU)(rest != BU(0)) & 1u))); /* rounded to odd, so that two roundings equal one */
    return half & (VU)((half & 0x7fffu) != BU(0));
}

/* Like sum_of_group, for the rows of a vector and ordinary numbers, whose products f32 holds exactly. Returns 0 where the
 * accumulator is infinite, NaN or too small, or the sum is too large. */
INLINE int sum_ordinary(const struct sum_rule rule, const struct side *a, const struct side *b, u32 k0, u32 k1, u32 row, u32 column, VU *c) {
    VF value;
    VI top;
    const i32 least = (i32)rule.fraction_bits - 126, finite = rule.accumulator == ELEMENT_F16 ? 15 : 127;
    split_sum(rule, *c, &value, &top);
    if (UNLIKELY(CMPI(6, top, BI(finite)))) return 0;
    for (u32 x = k0; x < k1; x++) top = largest(top, EXPONENTS(x));
    if (UNLIKELY(CMPI(1, top, BI(least)) & CMPI(5, top, BI(EXPONENT_ZERO / 2)))) return 0;
    const VI last = largest(top, BI(least)) - (i32)rule.fraction_bits;
    const VF scale = power(-last);
    VI sums[2] = {__builtin_convertvector(value * scale, VI), BI(0)};
    EACH_HALF(k0, k1) sums[h] += __builtin_convertvector(PRODUCTS(x) * scale, VI);
    const VI total = sums[0] + sums[1];
    if (UNLIKELY(CMPI(1, (sums[0] ^ total) & (sums[1] ^ total), BI(0)))) return 0;
    const VU cut = toward_zero(total), bits = (VU)((VF)cut * power(last));
    if (rule.accumulator == ELEMENT_F16) *c = round_to_f16(bits, (VU)(total - __builtin_convertvector((VF)cut, VI)));
    else *c = element_bits(rule.element) == 8 ? bits & ~0u << (23 - FP8_FRACTION_BITS) : bits;
    return 1;
}
/* Like sum_ordinary, but accumulators may be infinite or NaN; these stay as they are. */
static int sum_next_to_special(const struct sum_rule rule, const struct side *a, const struct side *b, u32 k0, u32 k1, u32 row, u32 column, VU *c) {
    const u32 infinity = rule.accumulator == ELEMENT_F16 ? 0x7c00u : 0x7f800000u, nan = rule.accumulator == ELEMENT_F16 ? 0x7fffu : 0x7fffffffu;
    const VU magnitude = *c & nan;
    const VI special = (VI)magnitude >= (i32)infinity;
    VU finite = *c & ~(VU)special;
    if (!sum_ordinary(rule, a, b, k0, k1, row, column, &finite)) return 0;
    *c = where(special, where((VI)magnitude == (i32)infinity, *c, BU(nan)), finite);
    return 1;
}

/* Like sum_ordinary, for significands. Returns 0 where a term is infinite or NaN, or a result is subnormal or too large. */
INLINE int sum_significands(const struct sum_rule rule, const struct side *a, const struct side *b, u32 k0, u32 k1, u32 row, u32 column, VU *c) {
    VF value;
    VI own;
    const struct format f = split_sum(rule, *c, &value, &own);
    own = mark_special(value, own, f);
    VI top = largest(own, BI(LEAST_TOP));
    for (u32 x = k0; x < k1; x++) top = largest(top, EXPONENTS(x));
    if (UNLIKELY(CMPI(5, top, BI(EXPONENT_SPECIAL)))) return 0;
    const VI last = top - (i32)rule.fraction_bits, least = last - 126, zero = last - 127;
#define CUT(v, e) __builtin_convertvector((v) * (VF)((VU)(largest(e, least) - zero) << 23), VI) /* a scale of 2^-126 truncates to zero */
    VI sums[2] = {CUT(significand_of(value, own), own), BI(0)};
    EACH_HALF(k0, k1) sums[h] += CUT(PRODUCTS(x), EXPONENTS(x));
    const VU total = (VU)sums[0] + (VU)sums[1];
    const VI negative = ((sums[0] & sums[1]) + ((sums[0] ^ sums[1]) >> 1)) >> 31; /* the sign of half the sum, which has 31 bits */
    const VU magnitude = (total ^ (VU)negative) - (VU)negative;
    VU rest = magnitude >> 24;
    rest |= rest >> 1, rest |= rest >> 2, rest |= rest >> 4;
    VU bits = (VU)__builtin_convertvector(magnitude & ~rest, VF);
    const VI empty = (VI)(magnitude == BU(0)), field = (VI)(bits >> 23) + last;
    if (UNLIKELY(CMPU(6, ((VU)field - 1u) & ~(VU)empty, BU(253)))) return 0;
    bits = ((bits + ((VU)last << 23)) & ~(VU)empty) | ((VU)negative & 0x80000000u);
    if (rule.accumulator == ELEMENT_F16) *c = round_to_f16(bits, magnitude & rest);
    else *c = element_bits(rule.element) == 8 ? bits & ~0u << (23 - FP8_FRACTION_BITS) : bits;
    return 1;
}

INLINE void sum_columns(const struct sum_rule rule, const int ordinary, const struct side *a, const struct side *b, u32 k, u32 first, u32 columns, u32 (*c)[ROWS]) {
    for (u32 x = 0; x < k; x += rule.group) {
        const u32 end = x + rule.group < k ? x + rule.group : k;
        for (u32 j = 0; j < columns; j++)
            for (u32 p = 0; p < ROWS; p += W) {
                VU *sums = (VU *)&c[j][p];
                if (LIKELY((ordinary ? sum_ordinary : sum_significands)(rule, a, b, x, end, p, first + j, sums))) continue;
                if (ordinary && sum_next_to_special(rule, a, b, x, end, p, first + j, sums)) continue;
                for (u32 i = p; i < p + W; i++) c[j][i] = sum_of_group(rule, a, b, x, end, i, first + j, c[j][i]);
            }
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
