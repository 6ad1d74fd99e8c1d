/* cp.async: copies in flight from global to shared memory.
 *
 * A copy is checked when it is issued, and its bytes arrive when the thread that issued it waits for its group. Until then
 * shared memory keeps its old content, which a program that reads too early gets every time. A copy that its thread
 * never waits for does not arrive at all; PTX promises its arrival only at the end of the kernel.
 *
 * The source is read at the arrival; PTX does not say when. So a program that overwrites the source before it has waited
 * computes a wrong result, which reading at the issue would hide. Reading late also moves the bytes once instead of twice.
 *
 * A warp's copies are kept in the order of their issue, one record for each instruction. Each lane numbers its own
 * groups, because lanes can diverge; a commit increments the lane's number. Only differences of these numbers matter. */

#include "emu.h"
#include <stdlib.h>

struct copy {
    u32 lanes; /* the lanes whose bytes have not arrived */
    u32 site, size;
    u32 group[32];
    u32 to[32];     /* offsets in shared memory */
    u32 amount[32]; /* bytes from the source; zeros follow */
    const u8 *from[32];
};

struct copies {
    struct copy *under_way;
    u32 count, capacity;
    u32 group[32]; /* the group of each lane's next copy */
};

/* Enough to fill the largest shared memory twice with 4 bytes per lane. When this many copies are in flight, as in a
 * loop that never waits, the older half arrives, which PTX allows at any time. */
#define COPIES_MAXIMUM 4096u

void copies_start(struct block *b) {
    if (!b->copies) return;
    for (u32 i = 0; i < b->warp_count; i++) b->copies[i].count = 0;
}

void copies_end(struct block *b) {
    if (!b->copies) return;
    for (u32 i = 0; i < b->worker->capacity_warps; i++) free(b->copies[i].under_way);
    free(b->copies);
    b->copies = NULL;
}

static void arrive(struct warp *w, const struct copy *c, u32 lanes) {
    for (u32 todo = lanes; todo; todo &= todo - 1) {
        u32 l = lowest_lane(todo), n = c->amount[l];
        u8 *to = w->shared + c->to[l];
        if (LIKELY(n == 16)) {
            memcpy(to, c->from[l], 16);
            continue;
        }
        if (n) memcpy(to, c->from[l], n);
        memset(to + n, 0, c->size - n);
    }
}

static struct copies *copies_of(struct warp *w) {
    struct block *b = w->block;
    if (!b->copies) b->copies = calloc(b->worker->capacity_warps, sizeof *b->copies);
    return &b->copies[w->index];
}

static struct copy *next_copy(struct warp *w, struct copies *q) {
    if (q->count == COPIES_MAXIMUM) {
        u32 half = COPIES_MAXIMUM / 2;
        for (u32 i = 0; i < half; i++) arrive(w, &q->under_way[i], q->under_way[i].lanes & w->live);
        q->count -= half;
        memmove(q->under_way, q->under_way + half, q->count * sizeof *q->under_way);
    }
    MAKE_ROOM(q->under_way, q->count, q->capacity);
    return &q->under_way[q->count];
}

/* The target of a lane's copy, after a quick test or from the slow path (access.c), which reports faults. */
static inline u32 target(struct warp *w, u32 site, u64 addr, u32 lane, u32 size, int watched) {
    if (LIKELY(!watched && addr + size <= w->shared_size && !(addr & (size - 1)))) return (u32)addr;
    return (u32)((u8 *)rt_address(w, site, SPACE_SHARED, addr, lane, size) - w->shared);
}
/* Likewise the source. */
static inline const u8 *source(struct warp *w, u32 site, u64 addr, u32 lane, u32 size, u32 used, int watched) {
    const struct site *c = &w->sites[site];
    if (LIKELY(!watched && addr >= c->lo && addr + size <= c->hi && !(addr & (size - 1)))) return (const u8 *)(addr + (u64)c->delta);
    return rt_address_part(w, site, SPACE_GLOBAL, addr, lane, size, used);
}

void rt_copy_async(struct warp *w, u32 load_site, u32 store_site, const u64 *to, const u64 *from, const u32 *amount, u32 size, u32 m) {
    struct copies *q = copies_of(w);
    struct copy *c = next_copy(w, q);
    const int watched = is_watched(w->block);
    c->lanes = m, c->site = store_site, c->size = size;
    memcpy(c->group, q->group, sizeof c->group);
    for (u32 todo = m; todo; todo &= todo - 1) {
        u32 l = lowest_lane(todo), n = amount[l] < size ? amount[l] : size;
        c->to[l] = target(w, store_site, to[l], l, size, watched);
        c->amount[l] = n;
        if (n) c->from[l] = source(w, load_site, from[l], l, size, n, watched);
    }
    q->count++;
}

void rt_copy_commit(struct warp *w, u32 m) {
    struct copies *q = copies_of(w);
    for (int i = 0; i < PIECES; i++) {
        VUu *group = (VUu *)&q->group[i * W];
        *group = SELU(MK(m, i), *group + 1, *group);
    }
}

/* Lanes that have committed more than `pending` groups since the copy was issued, its own group included. */
static u32 lanes_past(const struct copies *q, const struct copy *c, u32 pending) {
    u32 lanes = 0;
    for (int i = 0; i < PIECES; i++) {
        VU behind = *(const VUu *)&q->group[i * W] - *(const VUu *)&c->group[i * W];
        lanes |= (u32)CMPU(6, behind, BU(pending)) << (i * W);
    }
    return lanes;
}

static void wait_for(struct warp *w, struct copies *q, u32 pending, int all, u32 m) {
    const int watched = is_watched(w->block);
    u32 left = 0;
    for (u32 i = 0; i < q->count; i++) {
        struct copy *c = &q->under_way[i];
        u32 due = m & c->lanes & (all ? ~0u : lanes_past(q, c, pending));
        arrive(w, c, due);
        if (UNLIKELY(watched))
            for (u32 todo = due; todo; todo &= todo - 1) shadow_arrival(w, w->block, c->site, c->to[lowest_lane(todo)], lowest_lane(todo), c->size, 0, 1);
        c->lanes &= w->live & ~due;
        if (!c->lanes) continue;
        if (left != i) q->under_way[left] = *c;
        left++;
    }
    q->count = left;
}

void rt_copy_wait(struct warp *w, u32 pending, u32 m) { wait_for(w, copies_of(w), pending, 0, m); }

/* For cp.async.mbarrier.arrive, which makes a barrier object wait for a thread's copies. Here they arrive immediately,
 * as PTX allows. */
void rt_copy_arrive_all(struct warp *w, u32 m) { wait_for(w, copies_of(w), 0, 1, m); }
