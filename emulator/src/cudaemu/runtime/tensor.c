/* mma.sync, wmma.mma, the product of wgmma and movmatrix: from registers to matrices (tensor.h) and back. */

#include "tensor.h"

/* ---- fragments ------------------------------------------------------------------------------------------------------ */

/* out[8 · t + g] = in[4 · g + t] */
static void by_words(const u32 *in, u32 *out) {
#ifdef EMU_AVX512
    for (u32 i = 0; i < 2; i++) *(VU *)&out[16 * i] = permute_row((const VU *)in, IOTA(0) % 8 * 4 + IOTA(0) / 8 + 2 * i);
#else
    for (u32 t = 0; t < 4; t++)
        for (u32 g = 0; g < 8; g++) out[8 * t + g] = in[4 * g + t];
#endif
}
static void by_lanes(const u32 *in, u32 *out) {
#ifdef EMU_AVX512
    for (u32 i = 0; i < 2; i++) *(VU *)&out[16 * i] = permute_row((const VU *)in, IOTA(0) % 4 * 8 + IOTA(0) / 4 + 4 * i);
#else
    for (u32 t = 0; t < 4; t++)
        for (u32 g = 0; g < 8; g++) out[4 * g + t] = in[8 * t + g];
#endif
}

/* Loads up to 32 rows of A, or columns of B, as words. Register r holds four words of each row of a block of 8 rows: block
 * r % blocks, words from 4 · (r / blocks) on. */
#define SIDES 2
#define WORDS 16
struct words { u32 at[SIDES][WORDS][ROWS] __attribute__((aligned(64))); };
static void gather_words(const u32 *registers, u32 blocks, u32 chunks, struct words *words) {
    if (blocks % 2) memset(words, 0, sizeof words->at[0]); /* the last 8 rows do not exist */
    for (u32 r = 0; r < blocks * chunks; r++) {
        u32 turned[32] __attribute__((aligned(64))), block = r % blocks;
        by_words(registers + 32 * r, turned);
        for (u32 t = 0; t < 4; t++) memcpy(&words->at[block / 2][r / blocks * 4 + t][block % 2 * 8], turned + 8 * t, 32);
    }
}

/* C and D, by columns: register 2 · (row block + blocks · column block) + i holds column 2t + i of each row in a block.
 * With halves, one register holds both columns. */
static void load_block(const u32 *registers, u32 block, int halves, u32 (*c)[ROWS], u32 row) {
    u32 turned[2][32] __attribute__((aligned(64)));
    if (halves) {
        by_words(registers + 32 * block, turned[1]);
        for (u32 l = 0; l < 32; l += W) {
            const VU both = *(const VU *)&turned[1][l];
            *(VU *)&turned[0][l] = both & 0xffffu, *(VU *)&turned[1][l] = both >> 16;
        }
    } else
        for (u32 r = 0; r < 2; r++) by_words(registers + 32 * (2 * block + r), turned[r]);
    for (u32 j = 0; j < 8; j++) memcpy(&c[j][row], &turned[j % 2][8 * (j / 2)], 32);
}
static void store_block(u32 *registers, u32 block, int halves, const u32 (*c)[ROWS], u32 row) {
    u32 turned[2][32] __attribute__((aligned(64)));
    for (u32 j = 0; j < 8; j++) memcpy(&turned[j % 2][8 * (j / 2)], &c[j][row], 32);
    if (halves) {
        for (u32 l = 0; l < 32; l += W) *(VU *)&turned[0][l] |= *(const VU *)&turned[1][l] << 16;
        by_lanes(turned[0], registers + 32 * block);
    } else
        for (u32 r = 0; r < 2; r++) by_lanes(turned[r], registers + 32 * (2 * block + r));
}

/* ---- sparse matrices ------------------------------------------------------------------------------------------------ */

/* The metadata of a row: the positions of its stored elements (PTX ISA, "Sparse matrix storage"). Each stored element has two
 * bits for its place among four (tf32: four bits for a place among two; 4-bit integers: two bits for each pair). A row has 16,
 * 32 or 64 bits, which a group of four threads holds together with those of the row 8 further on:
 *
 *   16 bits    thread `selector` has both rows
 *   32 bits    threads 2 · selector and 2 · selector + 1 have one half of both rows each (16-bit elements, tf32) or one row each
 *   64 bits    threads 0 and 1 have the first halves of the two rows, threads 2 and 3 the second halves */
static u64 row_metadata(int element, u32 k, const u32 *metadata, u32 selector, u32 row) {
    const u32 g = row % 8, high = row / 8, bits = element == ELEMENT_TF32 ? 2 * k : element_bits(element) == 4 ? k / 2 : k;
    const u32 *quad = metadata + 4 * g;
    if (bits == 16) return quad[selector] >> 16 * high & 0xffff;
    if (bits == 64) return quad[high] | (u64)quad[2 + high] << 32;
    if (element_bits(element) < 16) return quad[2 * selector + high];
    return (quad[2 * selector] >> 16 * high & 0xffff) | (quad[2 * selector + 1] >> 16 * high & 0xffff) << 16;
}

/* Spreads the k / 2 stored columns of a side over k columns; the others are absent. */
static void spread(int element, u32 k, const u32 *metadata, u32 selector, const struct side *stored, struct side *s) {
    s->count = k, s->ordinary = stored->ordinary;
    for (u32 x = 0; x < k; x++)
        for (u32 i = 0; i < ROWS; i++) s->integer[x][i] = 0, s->exponent[x][i] = EXPONENT_ABSENT;
    for (u32 i = 0; i < ROWS; i++) {
        const u64 where = row_metadata(element, k, metadata, selector, i);
        for (u32 n = 0; n < k / 2; n++) {
            u32 x = element == ELEMENT_TF32             ? 2 * n + (where >> (4 * n + 1) & 1)
                    : element_bits(element) == 4 ? n / 4 * 8 + (where >> n / 2 * 2 & 3) * 2 + n % 2
                                                 : n / 2 * 4 + (where >> 2 * n & 3);
            s->integer[x][i] = stored->integer[n][i], s->exponent[x][i] = stored->exponent[n][i];
        }
    }
}

/* ---- instructions --------------------------------------------------------------------------------------------------- */

static int is_float(int e) { return e == ELEMENT_F16 || e == ELEMENT_BF16 || e == ELEMENT_TF32 || e == ELEMENT_E4M3 || e == ELEMENT_E5M2; }

static void decode(int element, u32 (*words)[ROWS], u32 count, int converted, struct side *s) {
    if (converted) bytes_to_halves(element, words, count), decode_floats(ELEMENT_F16, (const u32(*)[ROWS])words, 2 * count, s);
    else if (is_float(element)) decode_floats(element, (const u32(*)[ROWS])words, count, s);
    else decode_integers(element, (const u32(*)[ROWS])words, count, s);
}

/* Converts sums, which have the type of C, to the type of D. */
static void convert(int from, int to, u32 (*c)[ROWS], u32 columns) {
    if (from == to) return;
    for (u32 j = 0; j < columns; j++)
        for (u32 i = 0; i < ROWS; i++) c[j][i] = to == ELEMENT_F16 ? f32_to_f16_s(u2f(c[j][i])) : f2u(f16_to_f32_s(c[j][i]));
}

/* Computes the sum without C, in two halves of k, then adds C in float arithmetic, as ptxas does for 8-bit floats (tensor_sums.c). */
static void add_converted_products(struct mma how, struct side *a, struct side *b, u32 first, u32 columns, u32 (*c)[ROWS]) {
    u32 sums[8][ROWS] __attribute__((aligned(64))) = {0};
    struct sum_rule rule = sum_rule(how.architecture, ELEMENT_F16, how.d, 0);
    rule.group = how.k / 2;
    sum_floats(rule, a, b, how.k, first, columns, sums);
    for (u32 j = 0; j < columns; j++)
        for (u32 i = 0; i < ROWS; i++) {
            const int halves = how.d == ELEMENT_F16;
            const float sum = halves ? f16_to_f32_s(c[j][i]) + f16_to_f32_s(sums[j][i]) : u2f(c[j][i]) + u2f(sums[j][i]);
            if (sum != sum) c[j][i] = halves ? 0x7fff : 0x7fffffffu;
            else c[j][i] = halves ? f32_to_f16_s(sum) : f2u(sum);
        }
}

static void add_products(struct mma how, struct side *a, struct side *b, u32 first, u32 columns, u32 (*c)[ROWS]) {
    if (is_converted_fp8(how)) add_converted_products(how, a, b, first, columns, c);
    else if (is_float(how.a)) {
        const int accumulator = how.d == ELEMENT_F16 && how.c == ELEMENT_F16 ? ELEMENT_F16 : ELEMENT_F32;
        convert(how.c, accumulator, c, columns);
        sum_floats(sum_rule(how.architecture, how.a, accumulator, how.flags & MMA_SPARSE), a, b, how.k, first, columns, c);
        convert(accumulator, how.d, c, columns);
    } else if (how.a == ELEMENT_B1) sum_bits(a, b, how.k / 32, first, columns, c, how.flags & MMA_AND);
    else sum_integers(a, b, how.k, first, columns, c, how.flags & MMA_SATURATE);
}

/* D += A B for the rows of two blocks and the columns of one. */
static void add_blocks(struct mma how, struct side *a, struct side *b, u32 first, const u32 *c, u32 *d, u32 block, u32 blocks) {
    u32 sums[8][ROWS] __attribute__((aligned(64))) = {0};
    for (u32 h = 0; h < blocks; h++) load_block(c, block + h, how.c == ELEMENT_F16, sums, 8 * h);
    add_products(how, a, b, first, 8, sums);
    for (u32 h = 0; h < blocks; h++) store_block(d, block + h, how.d == ELEMENT_F16, (const u32(*)[ROWS])sums, 8 * h);
}

void rt_mma(struct mma how, const u32 *a, const u32 *b, const u32 *c, u32 *d, const u32 *metadata, u32 selector) {
    static __thread struct words words;
    static __thread struct side left[SIDES], right[SIDES], stored;
    const u32 row_blocks = how.m / 8, column_blocks = how.n / 8;
    const int converted = is_converted_fp8(how);
    const u32 a_words = how.k * element_bits(how.a) / 32 / (how.flags & MMA_SPARSE ? 2 : 1), b_words = how.k * element_bits(how.b) / 32;
    gather_words(a, row_blocks, a_words / 4, &words);
    for (u32 i = 0; i < (row_blocks + 1) / 2; i++) {
        decode(how.a, words.at[i], a_words, converted, how.flags & MMA_SPARSE ? &stored : &left[i]);
        if (how.flags & MMA_SPARSE) spread(how.a, how.k, metadata, selector, &stored, &left[i]);
    }
    gather_words(b, column_blocks, b_words / 4, &words);
    for (u32 i = 0; i < (column_blocks + 1) / 2; i++) decode(how.b, words.at[i], b_words, converted, &right[i]);
    for (u32 j = 0; j < column_blocks; j++)
        for (u32 i = 0; i < (row_blocks + 1) / 2; i++)
            add_blocks(how, &left[i], &right[j / 2], j % 2 * 8, c, d, j * row_blocks + 2 * i, row_blocks == 1 ? 1 : 2);
}

/* ---- wgmma ---------------------------------------------------------------------------------------------------------- */

/* Loads ROWS rows of `count` words each. */
static void gather_rows(const u32 *rows, u32 count, u32 signs, u32 (*words)[ROWS]) {
    for (u32 w = 0; w < count; w++)
        for (u32 i = 0; i < ROWS; i++) words[w][i] = rows[count * i + w] ^ signs;
}

void rows_of_fragment(const u32 *registers, u32 *rows) {
    for (u32 r = 0; r < 4; r++)
        for (u32 l = 0; l < 32; l++) rows[(r % 2 * 8 + l / 4) * 8 + r / 2 * 4 + l % 4] = registers[32 * r + l];
}

static u32 sign_bits(int element) { return element_bits(element) == 8 ? 0x80808080u : element_bits(element) == 16 ? 0x80008000u : 0x80000000u; }

void multiply_warpgroup(struct mma how, const u32 *a, const u32 *b, u32 *const *d) {
    static __thread struct words words;
    static __thread struct side left[WARPGROUP], right;
    const u32 a_words = how.k * element_bits(how.a) / 32, b_words = how.k * element_bits(how.b) / 32;
    how.flags |= MMA_GROUP;
    for (u32 i = 0; i < WARPGROUP; i++) {
        gather_rows(a + i * ROWS * a_words, a_words, how.flags & MMA_NEGATE_A ? sign_bits(how.a) : 0, words.at[0]);
        decode(how.a, words.at[0], a_words, 0, &left[i]);
    }
    for (u32 j = 0; j < how.n / 8; j++) {
        if (j % 2 == 0) {
            u32 columns[ROWS * WORDS] = {0};
            memcpy(columns, b + 8 * j * b_words, (how.n - 8 * j < ROWS ? 8 : ROWS) * b_words * sizeof *b);
            gather_rows(columns, b_words, how.flags & MMA_NEGATE_B ? sign_bits(how.b) : 0, words.at[1]);
            decode(how.b, words.at[1], b_words, 0, &right);
        }
        for (u32 i = 0; i < WARPGROUP; i++) add_blocks(how, &left[i], &right, j % 2 * 8, d[i], d[i], 2 * j, 2);
    }
}

/* m8n8k4 with halves is not an instruction of sm_80 and later. ptxas 13.0 replaces it by additions and multiplications
 * of f32 in this order (read with nvdisasm; tests/gpu/test_tensor_bits_on_a_gpu.py). Element x of row r is at
 * [x / 2][r][x % 2]. */
static void add_quads_products(struct mma how, const u16 *a, const u16 *b, u32 (*c)[ROWS]) {
    for (u32 j = 0; j < 8; j++)
        for (u32 i = 0; i < 8; i++) {
            float p[4], q[4], sum = how.c == ELEMENT_F16 ? f16_to_f32_s(c[j][i]) : u2f(c[j][i]);
            for (u32 x = 0; x < 4; x++) {
                p[x] = f16_to_f32_s(a[x / 2 * 2 * ROWS + 2 * i + x % 2]);
                q[x] = f16_to_f32_s(b[x / 2 * 2 * ROWS + 2 * j + x % 2]);
            }
            if (how.c == ELEMENT_F16 && how.d == ELEMENT_F16) {
                sum += __builtin_fmaf(p[1], q[1], p[0] * q[0]);
                sum += __builtin_fmaf(p[3], q[3], p[2] * q[2]);
            } else {
                float products = 0;
                for (u32 x = 0; x < 4; x++) products = __builtin_fmaf(p[x], q[x], products);
                sum += products;
            }
            c[j][i] = sum != sum ? how.d == ELEMENT_F16 ? 0x7fff : 0x7fffffffu : how.d == ELEMENT_F16 ? f32_to_f16_s(sum) : f2u(sum);
        }
}

/* m8n8k4 with halves computes four separate products, in layouts of their own. Product q is in lanes 4q … 4q + 3 and in those
 * 16 further on. A lane has row `lane % 4 + 4 · (lane / 16)` of A, or that column, and likewise a column, or a row, of B. Of C
 * it has the row with that number if C has halves, and parts of two rows if C has f32. */
void rt_mma_quads(struct mma how, int a_by_columns, int b_by_rows, const u32 *a, const u32 *b, const u32 *c, u32 *d) {
    u32 results[8 * 32];
    for (u32 quad = 0; quad < 4; quad++) {
        u32 words[2][2][ROWS] __attribute__((aligned(64))) = {0}, sums[8][ROWS] __attribute__((aligned(64))) = {0};
        u16 *const sides[2] = {(u16 *)words[0], (u16 *)words[1]};
        for (u32 n = 0; n < 8; n++) {
            const u32 lane = 4 * quad + n % 4 + n / 4 * 16;
            for (u32 i = 0; i < 4; i++)
                for (u32 s = 0; s < 2; s++) {
                    const u32 crossed = s ? (u32)b_by_rows : (u32)a_by_columns;
                    const u32 row = crossed ? i + n / 4 * 4 : n, x = crossed ? n % 4 : i;
                    sides[s][x / 2 * 2 * ROWS + 2 * row + x % 2] = (u16)((s ? b : a)[32 * (i / 2) + lane] >> 16 * (i % 2));
                }
            for (u32 i = 0; i < 8; i++) {
                if (how.c == ELEMENT_F16) sums[i][n] = c[32 * (i / 2) + lane] >> 16 * (i % 2) & 0xffff;
                else sums[(i & 4) + (lane & 2) + (i & 1)][(lane & 1) + (i & 2) + n / 4 * 4] = c[32 * i + lane];
            }
        }
        add_quads_products(how, sides[0], sides[1], sums);
        for (u32 n = 0; n < 8; n++) {
            const u32 lane = 4 * quad + n % 4 + n / 4 * 16;
            for (u32 i = 0; i < 8; i++) {
                if (how.d != ELEMENT_F16) results[32 * i + lane] = sums[(i & 4) + (lane & 2) + (i & 1)][(lane & 1) + (i & 2) + n / 4 * 4];
                else if (i % 2) results[32 * (i / 2) + lane] = sums[i - 1][n] | sums[i][n] << 16;
            }
        }
    }
    memcpy(d, results, (how.d == ELEMENT_F16 ? 4 : 8) * 32 * sizeof *d);
}

/* The NaN of a sum is b's, else the accumulator's, else a's, made quiet (as in an H200's results). */
static double add_product(double sum, double a, double b) {
    const double next = __builtin_fma(a, b, sum);
    if (next == next) return next;
    const double from = b != b ? b : sum != sum ? sum : a != a ? a : next;
    return q2d(d2q(from) | 1ull << 51);
}
/* Doubles: one fused multiplication and addition after the other, in the order of k (MMA-Sim, simulator/nv.py). */
void rt_mma_f64(struct mma how, const u64 *a, const u64 *b, const u64 *c, u64 *d) {
    double A[16][16], B[16][8];
    const u32 blocks = how.m / 8;
    for (u32 l = 0; l < 32; l++) {
        for (u32 r = 0; r < blocks * how.k / 4; r++) A[r % blocks * 8 + l / 4][r / blocks * 4 + l % 4] = q2d(a[32 * r + l]);
        for (u32 r = 0; r < how.k / 4; r++) B[4 * r + l % 4][l / 4] = q2d(b[32 * r + l]);
    }
    for (u32 i = 0; i < 2 * blocks; i++)
        for (u32 l = 0; l < 32; l++) {
            double s = q2d(c[32 * i + l]);
            for (u32 x = 0; x < how.k; x++) s = add_product(s, A[i / 2 * 8 + l / 4][x], B[x][l % 4 * 2 + i % 2]);
            d[32 * i + l] = d2q(s);
        }
}

/* movmatrix: row g of the 8 × 8 matrix of halves becomes column g. */
void rt_movmatrix(const u32 *in, u32 *out) {
    const u16 *halves = (const u16 *)in;
    for (u32 l = 0; l < 32; l++) {
        const u32 g = l / 4, t = l % 4;
        out[l] = halves[16 * t + g] | (u32)halves[16 * t + 8 + g] << 16;
    }
}
