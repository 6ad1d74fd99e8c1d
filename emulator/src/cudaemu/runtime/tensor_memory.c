/* ldmatrix, stmatrix, wmma.load and wmma.store. An access that is clearly valid costs one check. Any other goes,
 * element by element or row by row, to rt_address, which reports faults. */

#include "emu.h"
#include "tensor.h"

/* ---- wmma ----------------------------------------------------------------------------------------------------------- */

/* The layout of a fragment's register in memory: element e of word t of row g is at
 * `base` + g · row + t · word + e · element. */
struct steps { u32 start, row, word, element; };

static struct steps steps_of(struct wmma how, u32 stride, u32 r) {
    const u32 blocks = how.rows / 8, bits = element_bits(how.element), E = bits < 32 ? 32 / bits : 1;
    const u32 down = how.adjacent ? 1 : stride, along = how.adjacent ? stride : 1;
    if (!how.accumulator) {
        const u32 needed = blocks * (how.columns / (4 * E)), n = r % needed;
        return (struct steps){n % blocks * 8 * down + n / blocks * 4 * E * along, down, E * along, along};
    }
    const u32 parts = bits == 16 ? 1 : 2, block = r / parts;
    return (struct steps){block % blocks * 8 * down + (block / blocks * 8 + r % parts) * along, down, 2 * along, along};
}

/* The host address of a matrix that is correctly aligned in one allocation; NULL otherwise, or if accesses are watched. */
static u8 *whole_matrix(struct warp *w, u32 site, int space, u64 base, u64 bytes, u32 unit) {
    if (base % unit || is_watched(w->block)) return NULL;
    if (is_shared(base) && space == SPACE_GENERIC) base -= SHARED_WINDOW, space = SPACE_SHARED;
    if (space == SPACE_SHARED) return base + bytes <= w->shared_size ? w->shared + base : NULL;
    const struct site *c = &w->sites[site];
    if (base < c->lo || base + bytes > c->hi) return NULL;
    return (u8 *)(base + (u64)c->delta);
}

/* Bytes from the first element of a matrix to the end of its last one. */
static u64 extent(struct wmma how, u32 stride) {
    const u64 lines = how.adjacent ? how.columns : how.rows, length = how.adjacent ? how.rows : how.columns;
    return ((lines - 1) * stride + length) * element_bits(how.element) / 8;
}

static void pairs_from(u32 *out, const u16 *p, struct steps s) {
    for (u32 g = 0; g < 8; g++, p += s.row)
        for (u32 t = 0; t < 4; t++) out[4 * g + t] = p[t * s.word] | (u32)p[t * s.word + s.element] << 16;
}

void rt_wmma_load(struct warp *w, u32 site, int space, u64 base, u32 stride, struct wmma how, u32 registers, void *out) {
    const u32 bits = element_bits(how.element), bytes = bits < 8 ? 4 : bits / 8, E = bits < 32 ? 32 / bits : 1;
    const u32 step = bits < 8 ? 8 / bits : 1; /* elements smaller than a byte are read as words */
    const u8 *whole = whole_matrix(w, site, space, base, extent(how, stride), bits < 8 ? 4 : bits / 8);
    for (u32 r = 0; r < registers; r++) {
        const struct steps s = steps_of(how, stride, r);
        if (whole && s.element == 1 && s.word == E && bits <= 32) {
            for (u32 g = 0; g < 8; g++) memcpy((u32 *)out + 32 * r + 4 * g, whole + (u64)(s.start + g * s.row) * bits / 8, 16);
            continue;
        }
        if (whole && bits == 16) {
            pairs_from((u32 *)out + 32 * r, (const u16 *)whole + s.start, s);
            continue;
        }
        if (whole && bits == 32) {
            for (u32 l = 0; l < 32; l++) ((u32 *)out)[32 * r + l] = ((const u32a *)whole)[s.start + l / 4 * s.row + l % 4 * s.word];
            continue;
        }
        for (u32 l = 0; l < 32; l++) {
            u64 word = 0;
            for (u32 e = 0; e < (bits < 8 ? 1 : E); e++) {
                const u64 offset = (u64)(s.start + l / 4 * s.row + l % 4 * s.word + e * s.element) * bytes / (bits < 8 ? 4 * step : 1);
                const u8 *p = whole ? whole + offset : rt_address(w, site, space, base + offset, l, bytes);
                word |= (bytes == 1 ? *p : bytes == 2 ? *(const u16a *)p : bytes == 4 ? *(const u32a *)p : *(const u64a *)p) << (e * bits);
            }
            if (bits == 64) ((u64 *)out)[32 * r + l] = word;
            else ((u32 *)out)[32 * r + l] = (u32)word;
        }
    }
}
void rt_wmma_store(struct warp *w, u32 site, int space, u64 base, u32 stride, struct wmma how, u32 registers, const void *in) {
    const u32 bits = element_bits(how.element), bytes = bits / 8, E = bits < 32 ? 32 / bits : 1;
    u8 *whole = whole_matrix(w, site, space, base, extent(how, stride), bytes);
    for (u32 r = 0; r < registers; r++) {
        const struct steps s = steps_of(how, stride, r);
        if (whole && bits == 32) {
            for (u32 l = 0; l < 32; l++) ((u32a *)whole)[s.start + l / 4 * s.row + l % 4 * s.word] = ((const u32 *)in)[32 * r + l];
            continue;
        }
        for (u32 l = 0; l < 32; l++) {
            const u64 word = bits == 64 ? ((const u64 *)in)[32 * r + l] : ((const u32 *)in)[32 * r + l];
            for (u32 e = 0; e < E; e++) {
                const u64 offset = (u64)(s.start + l / 4 * s.row + l % 4 * s.word + e * s.element) * bytes;
                u8 *p = whole ? whole + offset : rt_address(w, site, space, base + offset, l, bytes);
                if (bytes == 2) *(u16a *)p = (u16)(word >> (e * bits));
                else if (bytes == 4) *(u32a *)p = (u32)word;
                else *(u64a *)p = word;
            }
        }
    }
}

/* ---- matrices of 8 × 8 halves ------------------------------------------------------------------------------------------ */

static u8 *matrix_row(struct warp *w, u32 site, int space, u64 addr, u32 lane, int watched) {
    const u64 offset = space == SPACE_GENERIC ? addr - SHARED_WINDOW : addr;
    if (LIKELY(!watched && offset + 16 <= w->shared_size && offset % 16 == 0)) return w->shared + offset;
    return rt_address(w, site, space, addr, lane, 16);
}

/* Element (row, column) of halves[8][8] goes to (column, row). */
static void transpose(const u16 *in, u16 *out) {
    for (u32 i = 0; i < 8; i++)
        for (u32 j = 0; j < 8; j++) out[8 * i + j] = in[8 * j + i];
}

void rt_ldmatrix(struct warp *w, u32 site, int space, const u64 *addr, u32 count, int transposed, u32 *out) {
    const int watched = is_watched(w->block);
    for (u32 j = 0; j < count; j++) {
        u16 rows[64];
        u32 *to = transposed ? (u32 *)rows : out + 32 * j;
        for (u32 g = 0; g < 8; g++) memcpy(to + 4 * g, matrix_row(w, site, space, addr[8 * j + g], 8 * j + g, watched), 16);
        if (transposed) transpose(rows, (u16 *)(out + 32 * j));
    }
}
void rt_stmatrix(struct warp *w, u32 site, int space, const u64 *addr, u32 count, int transposed, const u32 *in) {
    const int watched = is_watched(w->block);
    for (u32 j = 0; j < count; j++) {
        u16 rows[64];
        memcpy(rows, in + 32 * j, sizeof rows);
        if (transposed) transpose((const u16 *)(in + 32 * j), rows);
        for (u32 g = 0; g < 8; g++) memcpy(matrix_row(w, site, space, addr[8 * j + g], 8 * j + g, watched), rows + 8 * g, 16);
    }
}
