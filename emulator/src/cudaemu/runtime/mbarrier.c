/* mbarrier: barrier objects in shared memory (PTX ISA, "mbarrier"), which cuda::barrier, cuda::pipeline and bulk copies use.
 *
 * An object has 64 bits that only these instructions interpret, so the emulator can choose its layout:
 *
 *   bits 0-19   arrivals that the phase still waits for      bits 40-60  bytes that the phase still waits for; signed, because
 *   bits 20-39  arrivals that each phase waits for                       copies may complete before expect_tx counts them
 *   bit 61      parity of the phase                          bits 62-63  01 in an object that is initialised
 *
 * A phase is complete when it waits for no arrivals and no bytes. The token of an arrival is the object's value before it. A
 * token is valid only in its phase and the next one, so the parity bit tells the two apart. Threads wait by testing repeatedly:
 * a warp whose test fails lets the others run, and bulk copies arrive meanwhile (bulk.c). A block is deadlocked if its warps do
 * nothing but test without success VAIN_MAXIMUM times; the report names the wait that is the likeliest cause.
 *
 * Under --sanitize race, a completed phase puts the accesses before it in order with the later ones of a warp that waited. */

#include "counters.h"
#include "async.h"
#include <stdlib.h>

#define FIELD ((1ull << 20) - 1)
#define VALID_BIT 62
#define COUNT_MAXIMUM FIELD
#define BYTES_MAXIMUM ((i64)FIELD)

struct state { u64 pending, expected; i64 bytes; u32 parity; };

static struct state unpack(u64 object) {
    return (struct state){object & FIELD, object >> 20 & FIELD, (i64)(object << 3) >> 43, object >> 61 & 1};
}
static u64 pack(struct state s) {
    return s.pending | s.expected << 20 | ((u64)s.bytes & ((1ull << 21) - 1)) << 40 | (u64)s.parity << 61 | 1ull << VALID_BIT;
}
static int is_valid(u64 object) { return object >> VALID_BIT == 1; }

/* ---- facts about an object, for reports ------------------------------------------------------------------------------ */

struct object {
    const u64 *at;
    u32 phases;      /* completed ones */
    u32 completed;   /* the stamp of the last one (order.c) */
    u32 expect_line; /* of the last expect_tx, or 0 */
};
/* A warp's last unsuccessful test. */
struct vain { u32 site, lanes, expect_line; struct state left; };
struct objects {
    u32 count, capacity;
    struct object *of;
    struct vain *vain; /* of each warp */
};

static struct objects *objects_of(struct block *b) {
    if (!b->objects) {
        b->objects = calloc(1, sizeof *b->objects);
        b->objects->vain = calloc(b->worker->capacity_warps, sizeof *b->objects->vain);
    }
    return b->objects;
}

static struct object *facts_of(struct block *b, const u64 *at) {
    struct objects *o = objects_of(b);
    for (u32 i = 0; i < o->count; i++)
        if (o->of[i].at == at) return &o->of[i];
    MAKE_ROOM(o->of, o->count, o->capacity);
    o->of[o->count] = (struct object){.at = at};
    return &o->of[o->count++];
}

u32 mbarrier_phase(struct block *b, const u64 *object) { return facts_of(b, object)->phases; }

void mbarrier_start(struct block *b) {
    if (b->objects) b->objects->count = 0;
}

void mbarrier_release(struct block *b) {
    if (b->objects) free(b->objects->of), free(b->objects->vain), free(b->objects);
    b->objects = NULL;
}

/* The block whose shared memory holds an object. */
static struct block *owner_of(struct block *b, const u64 *object) {
    for (u32 i = 0; b->cluster && i < b->cluster->size; i++) {
        struct block *peer = b->cluster->blocks[i];
        if ((const u8 *)object >= peer->shared && (const u8 *)object < peer->shared + peer->launch->shared_bytes) return peer;
    }
    return b;
}

/* ---- arrivals and bytes ----------------------------------------------------------------------------------------------- */

/* Stores a changed object. If it waits for nothing more, its next phase begins. */
static void settle(struct block *b, u64 *object, struct state s) {
    makes_progress(b);
    for (u32 i = 0; b->cluster && i < b->cluster->size; i++) makes_progress(b->cluster->blocks[i]);
    if (!s.pending && !s.bytes) {
        struct block *owner = owner_of(b, object);
        struct object *facts = facts_of(owner, object);
        s.parity ^= 1, s.pending = s.expected;
        facts->phases++, facts->completed = order_next();
        barrier_orders(owner);
        if (owner != b) barrier_orders(b);
    }
    *object = pack(s);
}

static u64 *object_at(struct warp *w, u32 site, int space, u64 addr, u32 lane) {
    u64 *object = rt_address(w, site, space, addr, lane, 8);
    if (!is_valid(*object))
        rt_fault(w, site, lane, cudaErrorIllegalInstruction, "object_not_initialised", "of:object");
    return object;
}

void rt_mbarrier_init(struct warp *w, u32 site, int space, const u64 *addr, u32 m, const u64 *count) {
    for (u32 todo = m; todo; todo &= todo - 1) {
        u32 l = lowest_lane(todo);
        u64 *object = rt_address(w, site, space, addr[l], l, 8), n = (u32)count[l];
        if (!n || n > COUNT_MAXIMUM)
            rt_fault(w, site, l, cudaErrorIllegalInstruction, "object_count", "count=%llu\nlimit=%llu", (unsigned long long)n, (unsigned long long)COUNT_MAXIMUM);
        *object = pack((struct state){.pending = n, .expected = n});
    }
}

void rt_mbarrier_invalidate(struct warp *w, u32 site, int space, const u64 *addr, u32 m) {
    for (u32 todo = m; todo; todo &= todo - 1) *object_at(w, site, space, addr[lowest_lane(todo)], lowest_lane(todo)) = 0;
}

void rt_mbarrier_arrive(struct warp *w, u32 site, int space, const u64 *addr, u32 m, u64 *vv, int drops) {
    struct block *b = w->block;
    for (u32 todo = m; todo; todo &= todo - 1) {
        u32 l = lowest_lane(todo);
        u64 *object = object_at(w, site, space, addr[l], l), old = *object, n = (u32)vv[l];
        struct state s = unpack(old);
        if (n > s.pending)
            rt_fault(w, site, l, cudaErrorIllegalInstruction, "object_arrivals", "count=%llu\npending=%llu\nexpected=%llu", (unsigned long long)n, (unsigned long long)s.pending, (unsigned long long)s.expected);
        s.pending -= n;
        if (drops) s.expected -= n;
        settle(b, object, s);
        vv[l] = old;
    }
}

/* Makes the object wait for `bytes` more, or fewer if negative. */
static void add_bytes(struct warp *w, u32 site, u32 lane, u64 *object, i64 bytes) {
    struct state s = unpack(*object);
    s.bytes += bytes;
    if (s.bytes > BYTES_MAXIMUM || s.bytes < -BYTES_MAXIMUM)
        rt_fault(w, site, lane, cudaErrorIllegalInstruction, "object_bytes", "bytes=%lld\nlimit=%lld", (long long)s.bytes, (long long)BYTES_MAXIMUM);
    settle(w->block, object, s);
}

void rt_mbarrier_expect(struct warp *w, u32 site, int space, const u64 *addr, u32 m, const u64 *bytes, int completes) {
    for (u32 todo = m; todo; todo &= todo - 1) {
        u32 l = lowest_lane(todo);
        i64 n = (i64)(u32)bytes[l];
        u64 *object = object_at(w, site, space, addr[l], l);
        if (!completes) facts_of(owner_of(w->block, object), object)->expect_line = w->block->launch->module->info->sites[site].line;
        add_bytes(w, site, l, object, completes ? -n : n);
    }
}

void mbarrier_complete(struct warp *w, u32 site, u32 lane, struct block *whose, u64 *object, u32 bytes, u32 phase) {
    const struct object *facts = facts_of(whose, object);
    if (facts->phases != phase && first_time(w->block->launch->module->info, site, ~7u))
        finding(w, site, lane, "sync", "expect_too_few", "bytes=%u\nexpect=%u", bytes, facts->expect_line);
    if (is_valid(*object)) add_bytes(w, site, lane, object, -(i64)bytes);
    else
        finding(w, site, lane, "sync", "object_gone", "of:object");
}

/* ---- waiting ---------------------------------------------------------------------------------------------------------- */

/* What is wrong with a phase that never becomes complete. */
static const char *trouble(const struct vain *v, char *text, size_t size) {
    const i64 bytes = v->left.bytes;
    if (bytes) snprintf(text, size, "%s=%lld\nexpect=%u", bytes > 0 ? "lacking" : "excess", (long long)(bytes > 0 ? bytes : -bytes), v->expect_line);
    else snprintf(text, size, "%s", v->left.pending == v->left.expected ? "none:none" : "");
    return text;
}

/* How likely a wait is the cause of a deadlock: 2 if bytes are counted wrongly, 1 if arrivals are missing, else 0. */
static int suspicion(const struct vain *v) { return v->left.bytes ? 2 : v->left.pending < v->left.expected; }

static void deadlock(struct warp *w) {
    const struct block *b = w->block;
    struct warp *worst = w;
    const struct vain *vain = b->objects->vain;
    for (u32 i = 0; i < b->warp_count; i++)
        if (b->warps[i].asked_in_vain && b->state[i] == WARP_READY && suspicion(&vain[i]) > suspicion(&vain[worst->index])) worst = &b->warps[i];
    const struct vain *v = &vain[worst->index];
    char text[160];
    report_fault(worst, v->site, lowest_lane(v->lanes), cudaErrorLaunchTimeout, "deadlock_object", "pending=%llu\nexpected=%llu\n%s\nothers:%s", (unsigned long long)v->left.pending, (unsigned long long)v->left.expected, trouble(v, text, sizeof text), v->lanes == worst->live ? "all" : "apart");
    leave_warp(w, WARP_DEAD);
}

/* Called when a warp's wait has succeeded. */
static void passes(struct warp *w, u32 site, const u64 *object) {
    struct block *b = w->block, *owner = owner_of(b, object);
    const struct object *facts = facts_of(owner, object);
    if (facts->completed > w->synced) w->synced = facts->completed;
    if (facts->completed > b->cluster_synced) b->cluster_synced = facts->completed;
    int early = bulk_completes_at(b, object);
    for (u32 i = 0; b->cluster && i < b->cluster->size; i++) early |= bulk_completes_at(b->cluster->blocks[i], object);
    w->early_wait = early ? site + 1 : 0;
}

u32 rt_mbarrier_test(struct warp *w, u32 site, int space, const u64 *addr, u32 m, const u64 *vv, int parity) {
    struct block *b = w->block;
    struct vain *vain = &objects_of(b)->vain[w->index];
    u32 done = 0;
    for (u32 todo = m; todo; todo &= todo - 1) {
        u32 l = lowest_lane(todo);
        u64 *object = object_at(w, site, space, addr[l], l);
        const u32 of_phase = parity ? (u32)vv[l] & 1 : unpack(vv[l]).parity;
        if (unpack(*object).parity == of_phase) bulk_progress(b, object);
        struct state s = unpack(*object);
        if (s.parity != of_phase) {
            done |= 1u << l;
            if (is_watched(b)) passes(w, site, object);
        } else {
            vain->left = s;
            if (s.bytes) vain->expect_line = facts_of(owner_of(b, object), object)->expect_line;
        }
    }
    if (done) b->visit.w = NULL;
    count_async(w, ASYNC_WAITS, done == m);
    if (done == m) {
        b->asked_in_vain = w->asked_in_vain = 0;
        return done;
    }
    w->asked_in_vain = 1, vain->site = site, vain->lanes = m & ~done;
    if (++b->asked_in_vain > VAIN_MAXIMUM) deadlock(w);
    rt_nanosleep(w, 0);
    return done;
}
