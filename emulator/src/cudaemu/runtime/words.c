/* Loads of 1, 2 or 4 words of 32 bits per lane from addresses that differ between lanes. In global memory, addresses
 * that the translator knows nothing about usually turn out to be evenly spaced, for example those from a divided index.
 * Then one bounds check is enough, and often one load. Four words per lane, as in float4, are 16-byte loads and a
 * transposition.
 *
 * Compiled blocks call these functions too: inlining them took half of gcc's time for flash2.cu. */

#include "emu.h"

#define EACH_PIECE _Pragma("GCC unroll 8") for (u32 i = 0; i < PIECES; i++)
#define EACH_HALF _Pragma("GCC unroll 16") for (u32 i = 0; i < 2 * PIECES; i++)
#define EACH_WORD _Pragma("GCC unroll 4") for (u32 c = 0; c < count; c++)

INLINE void load_quads(const u8 *p, const i32 *offset, u32 *out) {
    EACH_PIECE {
        VU *o = (VU *)(out + i * W);
        gather_quads(p, offset + i * W, o, o + PIECES, o + 2 * PIECES, o + 3 * PIECES);
    }
}

void rt_load_quads(struct warp *w, u32 site, int space, const u32 *addr, u32 m, void *out) {
    u32 bad = w->shared_size < 16 || m != ~0u;
    const VU limit = BU((w->shared_size - 16) >> 4);
    EACH_PIECE bad |= (u32)CMPU(6, RORU(*(const VU *)&addr[i * W], 4), limit); /* misaligned offsets become large */
    if (LIKELY(!bad)) load_quads(w->shared, (const i32 *)addr, out);
    else rt_load_w(w, site, space, addr, m, 4, 4, out);
}

INLINE void load_spaced(const u8 *p, i64 stride, u32 count, u32 *out) {
    if (stride == 0) {
        EACH_WORD EACH_PIECE *(VU *)&out[32 * c + i * W] = BU(((const u32a *)p)[c]);
    } else if (count == 1 && stride == 4) {
        EACH_PIECE *(VU *)&out[i * W] = *(const VUu *)(p + i * 4 * W);
    } else if (count == 4) {
        i32 at[32] __attribute__((aligned(64)));
        EACH_PIECE *(VU *)&at[i * W] = IOTA(i) * BU((u32)stride);
        load_quads(p, at, out);
    } else {
        EACH_WORD EACH_PIECE *(VU *)&out[32 * c + i * W] = gather32(p + 4 * c, IOTA(i) * BU((u32)stride), MK(~0u, i));
    }
}

INLINE int is_even(const u64 *addr, i64 stride) {
    const VQ step = BQ((u64)stride * (W / 2));
    VQ expected = BQ(addr[0]) + IOTAQ(0) * BQ((u64)stride), differs = BQ(0);
    EACH_HALF differs |= *(const VQ *)&addr[i * (W / 2)] ^ expected, expected += step;
    return CMPQ(4, differs, BQ(0)) == 0;
}

INLINE int load_words(struct warp *w, u32 site, const u64 *addr, u32 m, u32 count, u32 *out) {
    const i64 stride = (i64)(addr[1] - addr[0]);
    if (m == ~0u && stride >> 26 == stride >> 63 && is_even(addr, stride)) { /* a gather's offsets are 32 bits wide */
        const u8 *p = g_span(w, site, addr[0], stride, 4 * count);
        if (LIKELY(p != NULL)) load_spaced(p, stride, count, out);
        return p != NULL;
    }
    const u32 shift = count == 4 ? 4 : count == 2 ? 3 : 2;
    for (int again = 0;; again++) {
        const u64 lo = w->sites[site].lo, size = w->sites[site].hi - lo;
        const VQ limit = BQ((size - 4 * count) >> shift);
        u32 bad = 0;
        EACH_HALF { /* misaligned offsets become large */
            VQ offset = *(const VQ *)&addr[i * (W / 2)] - BQ(lo);
            bad |= (u32)CMPQ(6, (offset >> shift) | (offset << (64 - shift)), limit) << (i * (W / 2));
        }
        if (LIKELY(size >= 4 * count && !(bad & m))) break;
        if (again || !rt_refill(w, site, addr[lowest_lane(m)], 4 * count)) return 0;
    }
    const u8 *p = (const u8 *)w->sites[site].delta;
    EACH_WORD EACH_PIECE *(VU *)&out[32 * c + i * W] =
        gather32q(p + 4 * c, *(const VQ *)&addr[i * W], *(const VQ *)&addr[i * W + W / 2], MKQ(m, 2 * i), MKQ(m, 2 * i + 1));
    return 1;
}

#define WORDS(count)                                                                                                   \
    void rt_load_words##count(struct warp *w, u32 site, int space, const u64 *addr, u32 m, void *out) {                \
        if (!load_words(w, site, addr, m, count, out)) rt_load_q(w, site, space, addr, m, 4, count, out);              \
    }
WORDS(1)
WORDS(2)
WORDS(4)
