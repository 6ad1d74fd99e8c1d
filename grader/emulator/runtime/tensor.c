/* mma.sync, wmma, ldmatrix, stmatrix.
 *
 * Layouts of mma.sync fragments are those of the PTX ISA: with g = lane / 4, t = lane % 4 and E elements to a register,
 *   A register r: row g + 8·(r & 1), columns t·E + 4E·(r >> 1) + e
 *   B register r: rows t·E + 4E·r + e, column g
 *   C register i: row g + 8·(i >> 1), column 2t + (i & 1); with two halves to a register, row g + 8r, columns 2t + e.
 * wmma fragments have no promised layout; here lane l's element i is element (l·n + i) mod (rows·columns), row-major.
 *
 * Products of halves are exact in f32; sums are kept in f64 and rounded once, which is at least as good as hardware. */

#include "emu.h"

static u32 width(int e) { return e == ELEMENT_F16 || e == ELEMENT_BF16 ? 16 : e == ELEMENT_S8 || e == ELEMENT_U8 ? 8 : 32; }

static double value(int e, u32 bits) {
    switch (e) {
    case ELEMENT_F16: return f16_to_f32_s(bits & 0xffff);
    case ELEMENT_BF16: return bf16_to_f32_s(bits & 0xffff);
    case ELEMENT_TF32: return u2f(bits & 0xffffe000u);
    case ELEMENT_F32: return u2f(bits);
    case ELEMENT_S8: return (i8)bits;
    case ELEMENT_U8: return (u8)bits;
    default: return (i32)bits;
    }
}

static u32 encode(int e, double v, int saturate) {
    switch (e) {
    case ELEMENT_F16: return f64_to_f16_s(v);
    case ELEMENT_F32: return f2u((float)v);
    default: {
        i64 n = (i64)v;
        if (saturate) n = clamp_i64(n, INT32_MIN, INT32_MAX);
        return (u32)n;
    }
    }
}

void rt_mma(int m, int n, int k, int ae, int be, int de, const u32 *a, const u32 *b, const u32 *c, u32 *d, int saturate) {
    static __thread double A[16][32], B[32][8], C[16][8];
    u32 bits = width(ae), E = 32 / bits;
    for (u32 l = 0; l < 32; l++) {
        u32 g = l >> 2, t = l & 3;
        u32 a_registers = (u32)(m * k) / 32 / E, b_registers = (u32)(k * n) / 32 / E;
        for (u32 r = 0; r < a_registers; r++)
            for (u32 e = 0; e < E; e++) {
                u32 row = m == 8 ? g : g + 8 * (r & 1), column = t * E + 4 * E * (m == 8 ? r : r >> 1) + e;
                A[row][column] = value(ae, a[32 * r + l] >> (e * bits));
            }
        for (u32 r = 0; r < b_registers; r++)
            for (u32 e = 0; e < E; e++) B[t * E + 4 * E * r + e][g] = value(be, b[32 * r + l] >> (e * bits));
        if (de == ELEMENT_F16)
            for (u32 r = 0; r < 2; r++)
                for (u32 e = 0; e < 2; e++) C[g + 8 * r][2 * t + e] = value(de, c[32 * r + l] >> (16 * e));
        else
            for (u32 i = 0; i < (u32)(m * n) / 32; i++) C[g + 8 * (i >> 1)][2 * t + (i & 1)] = value(de, c[32 * i + l]);
    }
    for (int i = 0; i < m; i++)
        for (int x = 0; x < k; x++)
            for (int j = 0; j < n; j++) C[i][j] += A[i][x] * B[x][j];
    for (u32 l = 0; l < 32; l++) {
        u32 g = l >> 2, t = l & 3;
        if (de == ELEMENT_F16)
            for (u32 r = 0; r < 2; r++) d[32 * r + l] = encode(de, C[g + 8 * r][2 * t], 0) | encode(de, C[g + 8 * r][2 * t + 1], 0) << 16;
        else
            for (u32 i = 0; i < (u32)(m * n) / 32; i++) d[32 * i + l] = encode(de, C[g + 8 * (i >> 1)][2 * t + (i & 1)], saturate);
    }
}

static u32 element_of(const u32 *rows, u32 registers, u32 bits, u32 index) {
    u32 per_register = 32 / bits, per_lane = registers * per_register;
    u32 lane = index / per_lane, i = index % per_lane;
    return rows[32 * (i / per_register) + lane] >> (i % per_register * bits);
}

void rt_wmma(int m, int n, int k, int ae, int be, int ce, int de, const u32 *a, u32 an, const u32 *b, u32 bn, const u32 *c, u32 cn, u32 *d, u32 dn, int saturate) {
    u32 bits = width(de), per_register = 32 / bits;
    for (u32 i = 0; i < 32 * dn; i++) d[i] = 0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double s = value(ce, element_of(c, cn, width(ce), (u32)(i * n + j)));
            for (int x = 0; x < k; x++)
                s += value(ae, element_of(a, an, width(ae), (u32)(i * k + x))) * value(be, element_of(b, bn, width(be), (u32)(x * n + j)));
            u32 index = (u32)(i * n + j), per_lane = dn * per_register, lane = index / per_lane, e = index % per_lane;
            u32 r = encode(de, s, saturate);
            d[32 * (e / per_register) + lane] |= bits == 32 ? r : (r & ((1u << bits) - 1)) << (e % per_register * bits);
        }
}

static u64 fragment_address(u64 base, u32 index, u32 columns, u32 stride, int column_major, u32 bits) {
    u32 row = index / columns, column = index % columns;
    return base + (u64)(column_major ? column * stride + row : row * stride + column) * (bits / 8);
}
void rt_wmma_load(struct warp *w, u32 site, int space, u64 base, u32 stride, u32 rows, u32 columns, int column_major, u32 bits, u32 registers, u32 *out) {
    u32 per_register = 32 / bits, per_lane = registers * per_register;
    for (u32 i = 0; i < 32 * registers; i++) out[i] = 0;
    for (u32 l = 0; l < 32; l++)
        for (u32 i = 0; i < per_lane; i++) {
            u32 index = (l * per_lane + i) % (rows * columns);
            const u8 *p = rt_address(w, site, space, fragment_address(base, index, columns, stride, column_major, bits), l, bits / 8);
            u32 v = bits == 8 ? *p : bits == 16 ? *(const u16a *)p : *(const u32a *)p;
            out[32 * (i / per_register) + l] |= v << (i % per_register * bits);
        }
}
void rt_wmma_store(struct warp *w, u32 site, int space, u64 base, u32 stride, u32 rows, u32 columns, int column_major, u32 bits, u32 registers, const u32 *in) {
    for (u32 index = 0; index < rows * columns; index++) {
        u32 v = element_of(in, registers, bits, index);
        u8 *p = rt_address(w, site, space, fragment_address(base, index, columns, stride, column_major, bits), index * 32 / (rows * columns), bits / 8);
        if (bits == 16) *(u16a *)p = (u16)v;
        else *(u32a *)p = v;
    }
}

void rt_ldmatrix(struct warp *w, u32 site, int space, const u64 *addr, u32 count, int transposed, u32 *out) {
    for (u32 j = 0; j < count; j++) {
        u16 matrix[8][8];
        for (u32 row = 0; row < 8; row++) memcpy(matrix[row], rt_address(w, site, space, addr[8 * j + row], 8 * j + row, 16), 16);
        for (u32 l = 0; l < 32; l++) {
            u32 g = l >> 2, t = 2 * (l & 3);
            out[32 * j + l] = transposed ? matrix[t][g] | (u32)matrix[t + 1][g] << 16 : matrix[g][t] | (u32)matrix[g][t + 1] << 16;
        }
    }
}
void rt_stmatrix(struct warp *w, u32 site, int space, const u64 *addr, u32 count, int transposed, const u32 *in) {
    for (u32 j = 0; j < count; j++)
        for (u32 l = 0; l < 32; l++)
            for (u32 e = 0; e < 2; e++) {
                u32 g = l >> 2, t = 2 * (l & 3) + e, row = transposed ? t : g, column = transposed ? g : t;
                u16 *p = rt_address(w, site, space, addr[8 * j + row], 8 * j + row, 16);
                p[column] = (u16)(in[32 * j + l] >> (16 * e));
            }
}
