/* The operands of wgmma in shared memory (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout").
 *
 * A descriptor has, in units of 16 bytes, the start address (bits 0-13), the leading (16-29) and the stride byte offset
 * (32-45); then the base offset (49-51) and the swizzle mode (62-63: none, 128, 64 or 32 bytes). With a swizzle of 2^B
 * chunks of 16 bytes, B address bits from bit 4 on are exclusive-ored with those from bit 7 on; the base offset is
 * subtracted from the latter first. Without this exchange, chunks of 16 bytes have the following offsets. S is the number of
 * chunks of the swizzle (1, 8, 4 or 2), LBO and SBO are the two byte offsets, r and k count rows and chunks along k (source:
 * CUTLASS, include/cute/arch/mma_sm90_desc.hpp; checked on an H200 by emulator/tests/conformance/hopper).
 *
 *   k contiguous           row r, chunk k: 16 S (r % 8) + SBO (r / 8) + (S = 1: LBO k; else 16 k)
 *   rows contiguous        line k of 8 rows, r in units of 8 rows:
 *     no swizzle             16 (k % 8) + LBO (k / 8) + SBO r
 *     swizzle                16 (r % S) + 16 S (k % 8) + LBO (r / S) + SBO (k / 8) */

#include "async.h"

struct layout { u32 start, leading, stride, base, chunks; int is_target; /* a bulk copy to the block's shared memory is under way */ };

static struct layout layout_of(u64 d) {
    static const u8 chunks[4] = {1, 8, 4, 2};
    return (struct layout){(u32)(d & 0x3fff) << 4, (u32)(d >> 16 & 0x3fff) << 4, (u32)(d >> 32 & 0x3fff) << 4, (u32)(d >> 49 & 7), chunks[d >> 62], 0};
}

static u32 chunk_offset(const struct layout *l, u32 offset) {
    const u32 at = l->start + offset;
    return at ^ (((at >> 7) - l->base) & (l->chunks - 1)) << 4;
}

static const u8 *chunk(struct warp *w, u32 site, const struct layout *l, u32 offset) {
    const u32 at = chunk_offset(l, offset);
    u32 copy, thread;
    if (UNLIKELY(at + 16 > w->shared_size))
        rt_fault(w, site, lowest_lane(w->live), cudaErrorIllegalAddress, "wgmma_outside", "offset=%u\nsize=%u", at, w->shared_size);
    if (UNLIKELY(at < SHARED_START) && first_time(w->block->launch->module->info, site, ~8u)) /* no fault on a GPU */
        finding(w, site, lowest_lane(w->live), "memory", "wgmma_system_shared", "offset=%u\nbegin=%u", at, SHARED_START);
    if (UNLIKELY(l->is_target) && !is_watched(w->block) && bulk_under_way(w->block, at, at + 16, &copy, &thread) && first_time(w->block->launch->module->info, site, copy))
        finding(w, site, lowest_lane(w->live), "sync", "wgmma_under_way", "offset=%u\nthread_of=%u\nline_of=%u", at, thread, w->block->launch->module->info->sites[copy].line);
    return w->shared + at;
}

/* The offset of chunk k of row r; by columns, of element k of the 8 rows from 8 r on. */
static inline u32 place(const struct layout *l, int by_columns, u32 r, u32 k) {
    const u32 S = l->chunks;
    if (!by_columns) return 16 * S * (r % 8) + l->stride * (r / 8) + (S == 1 ? l->leading : 16) * k;
    return S == 1 ? 16 * (k % 8) + l->leading * (k / 8) + l->stride * r : 16 * (r % S) + 16 * S * (k % 8) + l->leading * (r / S) + l->stride * (k / 8);
}

void wgmma_operand(struct warp *w, u32 site, u64 descriptor, u32 rows, u32 words, int by_columns, u32 *out) {
    struct layout l = layout_of(descriptor);
    u32 copy, thread;
    l.is_target = bulk_under_way(w->block, 0, w->shared_size, &copy, &thread);
    if (!by_columns) {
        for (u32 r = 0; r < rows; r++)
            for (u32 k = 0; k < words / 4; k++) memcpy(out + r * words + 4 * k, chunk(w, site, &l, place(&l, 0, r, k)), 16);
        return;
    }
    u16 *halves = (u16 *)out; /* only 16-bit elements can be read by columns */
    for (u32 r = 0; r < rows / 8; r++)
        for (u32 k = 0; k < 2 * words; k++) {
            const u16a *line = (const u16a *)chunk(w, site, &l, place(&l, 1, r, k));
            for (u32 i = 0; i < 8; i++) halves[(8 * r + i) * 2 * words + k] = line[i];
        }
}

void wgmma_watch_operand(struct warp *w, u32 site, u64 descriptor, u32 first, u32 rows, u32 words, int by_columns) {
    const struct layout l = layout_of(descriptor);
    const u32 lane = lowest_lane(w->live), unit = by_columns ? 8 : 1, lines = by_columns ? 2 * words : words / 4;
    for (u32 r = first / unit; r < (first + rows) / unit; r++)
        for (u32 k = 0; k < lines; k++) {
            const u32 at = chunk_offset(&l, place(&l, by_columns, r, k));
            if (at + 16 > w->shared_size) return; /* a fault when the product reads it */
            check_swizzle(w, site, at, l.chunks);
            rt_address(w, site, SPACE_SHARED, at, lane, 16);
        }
}
