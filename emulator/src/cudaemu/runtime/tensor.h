/* Declarations that the files of the matrix instructions share.
 *
 *   tensor.c         mma, wmma and the product of a wgmma: from registers and memory to matrices, and back
 *   tensor_sums.c    the arithmetic; its numbers: tensor_floats.h
 *   tensor_memory.c  ldmatrix, stmatrix, wmma.load, wmma.store
 *
 * Fragments. A matrix is stored in registers as blocks of 8 rows by 4 words of 32 bits (A, and B seen by columns), or of 8 rows
 * by 8 columns (C and D). In such a block lane 4g + t holds word t of row g, or columns 2t and 2t + 1 of row g. All
 * layouts of mma.sync in the PTX ISA are of this kind, except that of m8n8k4 with halves. PTX leaves the layouts of wmma
 * unspecified; here they follow the same pattern. */
#ifndef TENSOR_H
#define TENSOR_H

#include "warp.h"

#define ROWS 16u    /* rows of A, or columns of B, that are computed together, in one vector or several */
#define MAX_K 128u  /* of m16n8k128 with 4-bit elements */

/* ROWS rows of A, or columns of B, with k as the first index: floats, or integers, or 32 single bits each. A float's exponent
 * is that of its leading bit, but at least its type's least exponent. If the side is not `ordinary`, some float is infinite, NaN
 * or beyond 2^±LARGEST_ORDINARY, and `value` has significands instead: value · 2^exponent is the float. */
struct side {
    union { float value[MAX_K][ROWS]; i32 integer[MAX_K][ROWS]; } __attribute__((aligned(64)));
    i32 exponent[MAX_K][ROWS] __attribute__((aligned(64)));
    u32 count; /* of k, with floats */
    int ordinary;
};
#define LARGEST_ORDINARY 50 /* products of two such numbers can be scaled to any other's exponent in f32 */
/* Exponents that stand for special values. The sum of such an exponent and any other is still distinguishable. */
enum { EXPONENT_ZERO = -1000000, EXPONENT_ABSENT = -40000000, EXPONENT_INFINITE = 3000000, EXPONENT_NAN = 16000000, EXPONENT_SPECIAL = 1000000 };

/* An architecture's rule for sums of products (tensor_sums.c). */
struct sum_rule { u32 fraction_bits, group; int accumulator, element; };
struct sum_rule sum_rule(u32 architecture, int element, int accumulator, int sparse);

/* Splits words of 32 bits into elements: side[word · 32 / bits + i][row] is element i of words[word][row]. */
void decode_floats(int element, const u32 (*words)[ROWS], u32 count, struct side *s);
void decode_integers(int element, const u32 (*words)[ROWS], u32 count, struct side *s);
/* Replaces 8-bit floats by halves: first the lower two of each word, then, from words[count] on, the upper two. */
void bytes_to_halves(int element, u32 (*words)[ROWS], u32 count);
/* c[column][row] += a · b for `columns` columns of b from `first` on. Accumulators are bits of f16, f32 or s32. */
void sum_floats(struct sum_rule rule, struct side *a, struct side *b, u32 k, u32 first, u32 columns, u32 (*c)[ROWS]);
void sum_floats_by_the_rule(struct sum_rule rule, const struct side *a, const struct side *b, u32 k, u32 first, u32 columns, u32 (*c)[ROWS]);
void sum_integers(const struct side *a, const struct side *b, u32 k, u32 first, u32 columns, u32 (*c)[ROWS], int saturate);
void sum_bits(const struct side *a, const struct side *b, u32 k, u32 first, u32 columns, u32 (*c)[ROWS], int conjunction);

/* The product of one wgmma.mma_async, m64nNkK, added to the accumulators of a warpgroup. how.c equals how.d. Row r of A has how.k
 * elements: whole words, from a + r · words on. Column j of B likewise. d[i] are warp i's registers of D, with 32 lanes each,
 * laid out as in the PTX ISA; for scale-d = 0 they are zeros. MMA_NEGATE_A and MMA_NEGATE_B are imm-scale = -1. */
#define WARPGROUP 4u
void multiply_warpgroup(struct mma how, const u32 *a, const u32 *b, u32 *const *d);
/* Converts the 4 registers in which a warp has its part of A to rows for multiply_warpgroup. */
void rows_of_fragment(const u32 *registers, u32 *rows);

/* Whether ptxas replaces this product of 8-bit floats by products of halves (tensor_sums.c). */
INLINE int is_converted_fp8(struct mma how) {
    return how.architecture >= 90 && !(how.flags & (MMA_SPARSE | MMA_GROUP)) && (how.a == ELEMENT_E4M3 || how.a == ELEMENT_E5M2);
}

INLINE u32 element_bits(int e) {
    switch (e) {
    case ELEMENT_F16: case ELEMENT_BF16: return 16;
    case ELEMENT_S8: case ELEMENT_U8: case ELEMENT_E4M3: case ELEMENT_E5M2: return 8;
    case ELEMENT_S4: case ELEMENT_U4: return 4;
    case ELEMENT_B1: return 1;
    case ELEMENT_F64: return 64;
    default: return 32;
    }
}

#endif
