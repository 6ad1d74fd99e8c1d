/* Tracks which bytes of cudaMalloc'ed memory hold a value (--sanitize init): one bit per byte, set by stores, copies
 * and memsets.
 *
 * A copy from device to device copies the bits and reports nothing. A copy to the host reports a hole of 16 bytes or
 * more: smaller ones are usually the padding of structures. */

#define _GNU_SOURCE
#include "emu.h"
#include <stdlib.h>
#include <sys/mman.h>

#define HOLE 16u

static int is_written(const struct allocation *a, u64 offset) { return a->written[offset / 8] >> (offset % 8) & 1; }

static void put(struct allocation *a, u64 offset, int bit) {
    u8 mask = (u8)(1u << (offset % 8));
    if (bit) a->written[offset / 8] |= mask;
    else a->written[offset / 8] &= (u8)~mask;
}

void written_mark(struct allocation *a, u64 offset, u64 bytes) {
    if (!a->written) return;
    for (; bytes && offset % 8; offset++, bytes--) put(a, offset, 1);
    memset(a->written + offset / 8, 0xff, bytes / 8);
    for (offset += bytes / 8 * 8, bytes %= 8; bytes; offset++, bytes--) put(a, offset, 1);
}

int written_all(const struct allocation *a, u64 offset, u64 bytes) {
    if (!a->written) return 1;
    for (u64 i = offset; i < offset + bytes; i++)
        if (!is_written(a, i)) return 0;
    return 1;
}

static struct allocation *watched(const void *p) {
    struct allocation *a = is_watching ? memory_find((u64)p) : NULL;
    return a && a->written ? a : NULL;
}

void written_by_host(void *to, u64 bytes) {
    struct allocation *a = watched(to);
    if (a) written_mark(a, (u64)to - a->start, bytes);
}

/* Reports a copy to the host with a hole that was never written, once for each range of an allocation. */
static void report_hole(const char *function, const struct allocation *a, u64 offset, u64 bytes) {
    u64 hole = 0, longest = 0, at = 0, all = 0;
    for (u64 i = offset; i < offset + bytes; i++) {
        if (i % 8 == 0 && a->written[i / 8] == 0xff && i + 8 <= offset + bytes) {
            hole = 0, i += 7;
            continue;
        }
        hole = is_written(a, i) ? 0 : hole + 1;
        all += hole > 0;
        if (hole > longest) longest = hole, at = i + 1 - hole;
    }
    if (longest < HOLE || !first_time(a, (u32)bytes, (u32)offset)) return;
    char place[256];
    memory_place(a, a->start + at, place, sizeof place);
    finding(NULL, ~0u, 0, "init", "never_written", "function:%s\ncount=%llu\nbytes=%llu\n%s", function, (unsigned long long)all, (unsigned long long)bytes, place);
}

void written_copy(const char *function, void *to, const void *from, u64 bytes) {
    struct allocation *source = watched(from), *target = watched(to);
    if (target) {
        u64 t = (u64)to - target->start, f = source ? (u64)from - source->start : 0;
        if (!source) written_mark(target, t, bytes);
        else
            for (u64 i = 0; i < bytes; i++) put(target, t + i, is_written(source, f + i));
        return;
    }
    const struct allocation *other = source ? memory_find((u64)to) : NULL;
    if (source && (!other || other->kind == MEMORY_PINNED || other->kind == MEMORY_REGISTERED))
        report_hole(function, source, (u64)from - source->start, bytes);
}
