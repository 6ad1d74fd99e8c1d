/* cp.async.bulk: copies that the hardware makes asynchronously (PTX ISA, "Data Movement and Conversion Instructions: Bulk copy").
 *
 * A copy is checked when it is issued, and its bytes arrive later. A copy that completes at a barrier object arrives while
 * threads test that object without success, or occasionally while they test another object. The order is random and
 * depends only on the seed of GRADER_EMULATOR_SCHEDULE. So a program that does not wait reads the old content. A copy of
 * a bulk group arrives when its thread waits for the group, or else at the end of the block; wait_group.read only reads
 * the source. Sources are read equally late, so overwriting a source too early gives a wrong result, too. */

#include "async.h"
#include "counters.h"
#include "tensor_map.h"
#include <stdlib.h>

struct transfer {
    u8 *to;
    const u8 *from;
    u8 *read;    /* the source's bytes if they have been read before the arrival, else NULL */
    u64 *object; /* barrier object; NULL for a copy of a bulk group */
    struct block *target; /* the block whose shared memory receives the bytes */
    u32 bytes, site, warp, lane, group;
    u32 phase;   /* of its barrier object, when the copy was issued */
    int reads_shared;
    u32 reads;   /* the number of its read of shared memory (proxies.c), or 0 */
    u32 shared;  /* offset in the shared memory of a block */
    struct box *box; /* of a tensor copy; else NULL */
    int reduction, type;
};

struct bulk {
    struct transfer *in_flight;
    u32 count, capacity;
    u32 *group; /* the group of each thread's next copy */
    u64 random;
};

static struct bulk *bulk_of(struct block *b) {
    if (!b->bulk) {
        b->bulk = calloc(1, sizeof *b->bulk);
        b->bulk->group = calloc(32 * b->worker->capacity_warps, sizeof *b->bulk->group);
    }
    b->bulk->random = b->bulk->random ? b->bulk->random : schedule_seed_of(b->index);
    return b->bulk;
}

void bulk_start(struct block *b) {
    if (b->bulk) b->bulk->count = 0, b->bulk->random = schedule_seed_of(b->index);
}

void bulk_release(struct block *b) {
    if (!b->bulk) return;
    free(b->bulk->in_flight), free(b->bulk->group), free(b->bulk);
    b->bulk = NULL;
}

/* Makes the bytes of copy `i` arrive and removes it from the list, which has no order. */
static void arrive(struct block *b, u32 i) {
    struct transfer t = b->bulk->in_flight[i];
    b->bulk->in_flight[i] = b->bulk->in_flight[--b->bulk->count];
    struct warp *w = &b->warps[t.warp];
    const u8 *from = t.read ? t.read : t.from;
    if (t.reads) read_ends(w, t.reads);
    if (t.box && t.object) box_load(t.box, t.to - t.shared, t.shared);
    else if (t.box) box_store(t.box, from - t.shared, t.shared, t.reduction);
    else if (t.reduction) reduce_elements(t.to, from, t.bytes, t.reduction, t.type);
    else memcpy(t.to, from, t.bytes);
    const u32 swizzle = t.box ? t.box->map.swizzle : 0;
    free(t.read), free(t.box);
    if (t.object && is_watched(b)) shadow_arrival(w, t.target, t.site, t.shared, t.lane, t.bytes, swizzle, mbarrier_phase(t.target, t.object) == t.phase);
    if (t.object) mbarrier_complete(w, t.site, t.lane, t.target, t.object, t.bytes, t.phase);
}

static void progress(struct block *b, const u64 *object, u64 *random) {
    for (u32 left = b->bulk ? b->bulk->count : 0; left-- && b->bulk->count;) {
        const u32 i = random_below(random, b->bulk->count), chance = random_below(random, 4);
        const struct transfer *t = &b->bulk->in_flight[i];
        if (t->object == object ? chance != 0 : t->object && chance == 0) arrive(b, i);
    }
}

void bulk_progress(struct block *b, const u64 *object) {
    if (!b->cluster) {
        if (b->bulk) progress(b, object, &b->bulk->random);
        return;
    }
    for (u32 i = 0; i < b->cluster->size; i++) progress(b->cluster->blocks[i], object, &bulk_of(b)->random);
}

/* Called when a block ends. In a cluster, copies that complete at barrier objects continue, because they may go to other
 * blocks; what has not arrived when the block's memory is used again is discarded. */
void bulk_finish(struct block *b) {
    for (u32 i = b->bulk ? b->bulk->count : 0; i--;) {
        const struct transfer *t = &b->bulk->in_flight[i];
        if (t->object && b->cluster) continue;
        if (t->object)
            finding(&b->warps[t->warp], t->site, t->lane, "sync", "bulk_unfinished", "bytes=%u", t->bytes);
        else if (!t->read && t->reads_shared && first_time(b->launch->module->info, t->site, ~4u))
            finding(&b->warps[t->warp], t->site, t->lane, "sync", "bulk_still_read", "bytes=%u", t->bytes);
        arrive(b, i);
    }
}

/* ---- issue ---------------------------------------------------------------------------------------------------------- */

static void check(struct warp *w, u32 site, int space, u64 addr, u32 lane, u32 bytes) {
    const u32 step = is_watched(w->block) ? 16 : bytes > 16 ? bytes - 16 : 16;
    for (u32 at = 0; at < bytes; at += step) rt_address(w, site, space, addr + at, lane, 16);
}

static struct transfer *issue(struct warp *w, u32 site, u32 lane, struct block *target, const u64 *object, u32 bytes) {
    struct bulk *q = bulk_of(w->block);
    MAKE_ROOM(q->in_flight, q->count, q->capacity);
    struct transfer *t = &q->in_flight[q->count++];
    *t = (struct transfer){.bytes = bytes, .site = site, .warp = w->index, .lane = lane, .group = q->group[32 * w->index + lane]};
    t->target = target;
    if (!object) return t;
    t->object = quiet_address(w, site, SPACE_SHARED, *object, lane);
    t->phase = mbarrier_phase(target, t->object);
    if (is_watched(w->block) && target == w->block) check_object(w, site, lane, *object & CLUSTER_OFFSET);
    return t;
}

static i64 object_place(const struct transfer *t) { return t->object ? (u8 *)t->object - t->target->shared : -1; }

/* Counts a copy between global and shared memory; `blocks` is the number of blocks that receive the bytes. */
static void count_copy(struct warp *w, int loads, u32 blocks, u32 bytes) {
    if (!w->counters) return;
    if (!loads) {
        count_async(w, ASYNC_STORE_BYTES, bytes);
        return;
    }
    const struct bulk *q = bulk_of(w->block);
    u32 stages = 0;
    for (u32 i = 0; i < q->count; i++) {
        u32 j = 0;
        while (object_place(&q->in_flight[j]) != object_place(&q->in_flight[i])) j++;
        stages += q->in_flight[i].object && i == j;
    }
    count_async(w, ASYNC_STAGES, stages), count_async(w, ASYNC_LOADS, 1), count_async(w, ASYNC_LOAD_BYTES, bytes);
    count_async(w, ASYNC_MULTICAST_BYTES, (u64)bytes * (blocks - 1));
}

/* `address` in the next block of a multicast, whose bit is removed from `blocks`; without a multicast, `address` itself. */
static u64 next_place(u64 address, u32 *blocks, int multicast) {
    const u64 rank = multicast ? lowest_lane(*blocks) + 1u : 0;
    *blocks &= *blocks - 1;
    return multicast ? (address & CLUSTER_OFFSET) | rank << 24 : address;
}

static struct block *target_of(struct block *b, u64 place) {
    return place > CLUSTER_OFFSET ? cluster_block(b, place) : b;
}

void rt_bulk_copy(struct warp *w, u32 load_site, u32 store_site, struct bulk_copy how, const u64 *to, const u64 *from, const u32 *bytes, const u64 *object, const u32 *blocks, u32 m) {
    for (u32 todo = m; todo; todo &= todo - 1) {
        const u32 l = lowest_lane(todo), n = bytes[l];
        if (n % 16) rt_fault(w, store_site, l, cudaErrorIllegalInstruction, "bulk_size", "bytes=%u", n);
        if (!n) continue;
        const u32 reads = how.from == SPACE_SHARED && is_watched(w->block) ? read_begins(w, load_site, l) : 0;
        check(w, load_site, how.from, from[l], l, n);
        for (u32 left = blocks ? blocks[l] & 0xffff : 1; left;) {
            u32 same = left;
            const u64 place = next_place(to[l], &left, blocks != NULL), done = object ? next_place(object[l], &same, blocks != NULL) : 0;
            check(w, store_site, how.to, place, l, n);
            struct transfer *t = issue(w, store_site, l, target_of(w->block, place), object ? &done : NULL, n);
            t->reads = reads, t->reads_shared = how.from == SPACE_SHARED;
            t->to = quiet_address(w, store_site, how.to, place, l), t->from = quiet_address(w, load_site, how.from, from[l], l);
            t->shared = (u32)place & CLUSTER_OFFSET, t->reduction = how.reduction, t->type = how.type;
        }
        const u32 targets = blocks ? (u32)__builtin_popcount(blocks[l] & 0xffff) : 1;
        if (how.from == SPACE_GLOBAL || how.to == SPACE_GLOBAL) count_copy(w, how.from == SPACE_GLOBAL, targets, n);
    }
}

/* Reports a fault for a box that an H200 refuses. The PTX ISA does not mention these limits. */
static void check_corner(struct warp *w, u32 site, u32 l, const struct box *box, int stores) {
    const struct tensor_map *m = &box->map;
    if (box->at[0] * (i32)m->element % 16)
        rt_fault(w, site, l, cudaErrorIllegalInstruction, "box_start", "bytes=%d\nelement=%u", box->at[0] * (i32)m->element, m->element);
    for (u32 i = 0; i < m->rank; i++) {
        if (stores && box->at[i] < 0)
            rt_fault(w, site, l, cudaErrorIllegalInstruction, "box_before", "at=%d\ndimension=%u", box->at[i], i);
        if (!m->pixels || i == 0 || i + 1 == m->rank) continue;
        const i64 low = m->low[i - 1], high = (i64)m->last[i] + m->high[i - 1];
        if (box->at[i] < low || box->at[i] > high)
            rt_fault(w, site, l, cudaErrorIllegalInstruction, "pixels_outside", "at=%d\ndimension=%u\nlow=%lld\nhigh=%lld", box->at[i], i, (long long)low, (long long)high);
        if (stores && (low < 0 || m->high[i - 1] > 0))
            rt_fault(w, site, l, cudaErrorIllegalInstruction, "pixels_stored_outside", "low=%lld\nhigh=%lld\ndimension=%u", (long long)low, (long long)high, i);
    }
}

void rt_bulk_tensor(struct warp *w, u32 load_site, u32 store_site, struct box_copy how, const u64 *shared, const u64 *map, const u32 *at, const u64 *object, const u32 *blocks, u32 m) {
    for (u32 todo = m; todo; todo &= todo - 1) {
        const u32 l = lowest_lane(todo), global_site = object ? load_site : store_site, shared_site = object ? store_site : load_site;
        struct box box = {0};
        memcpy(&box.map, quiet_address(w, global_site, SPACE_GENERIC, map[l], l), sizeof box.map);
        if (box.map.magic != MAP_MAGIC || box.map.rank != how.dimensions)
            rt_fault(w, global_site, l, cudaErrorIllegalInstruction, "not_a_map", "dimensions=%u", how.dimensions);
        if ((box.map.pixels != 0) != (how.by_pixels != 0))
            rt_fault(w, global_site, l, cudaErrorIllegalInstruction, "map_mode", "mode:%s\nmade:cuTensorMapEncode%s", how.by_pixels ? "im2col" : "tile", how.by_pixels ? "Tiled" : "Im2col");
        for (u32 i = 0; i < how.dimensions; i++) box.at[i] = (i32)at[32 * i + l];
        for (u32 i = 0; i < how.offsets; i++) box.offset[i + 1] = at[32 * (how.dimensions + i) + l];
        check_corner(w, global_site, l, &box, object == NULL);
        const u32 bytes = box_bytes(&box.map);
        if (shared[l] % 128)
            rt_fault(w, shared_site, l, cudaErrorMisalignedAddress, "box_misaligned", "past=%u", (u32)(shared[l] % 128));
        u64 first, last;
        if (box_extent(&box, &first, &last)) {
            rt_address(w, global_site, SPACE_GLOBAL, first, l, 1);
            rt_address(w, global_site, SPACE_GLOBAL, last, l, 1);
        }
        for (u32 left = blocks ? blocks[l] & 0xffff : 1; left;) {
            u32 same = left;
            const u64 place = next_place(shared[l], &left, blocks != NULL), done = object ? next_place(object[l], &same, blocks != NULL) : 0;
            const u32 reads = !object && is_watched(w->block) ? read_begins(w, shared_site, l) : 0;
            check(w, shared_site, SPACE_SHARED, place, l, bytes);
            struct transfer *t = issue(w, store_site, l, target_of(w->block, place), object ? &done : NULL, bytes);
            t->reads = reads, t->reads_shared = !object;
            t->shared = (u32)place & CLUSTER_OFFSET, t->reduction = how.reduction;
            t->from = t->to = quiet_address(w, shared_site, SPACE_SHARED, place, l);
            t->box = memcpy(malloc(sizeof box), &box, sizeof box);
        }
        count_copy(w, object != NULL, blocks ? (u32)__builtin_popcount(blocks[l] & 0xffff) : 1, bytes);
    }
}

/* st.async and red.async (PTX ISA): they arrive like a bulk copy, but their values are read when they are issued. */
void rt_send(struct warp *w, u32 site, struct bulk_copy how, u32 size, u32 count, const u64 *to, const u64 *object, const u64 *values, u32 m) {
    const u64 window = how.to == SPACE_GENERIC ? SHARED_WINDOW : 0;
    for (u32 todo = m; todo; todo &= todo - 1) {
        const u32 l = lowest_lane(todo);
        const u64 place = to[l] - window, done = object[l] - window;
        rt_address(w, site, SPACE_SHARED, place, l, size * count);
        if (rank_of_u64_s(place, w->cluster_rank) != rank_of_u64_s(done, w->cluster_rank))
            rt_fault(w, site, l, cudaErrorIllegalInstruction, "store_and_object_apart", "peer=%u\nobject=%u", rank_of_u64_s(place, w->cluster_rank), rank_of_u64_s(done, w->cluster_rank));
        struct transfer *t = issue(w, site, l, target_of(w->block, place), &done, size * count);
        t->to = quiet_address(w, site, SPACE_SHARED, place, l), t->read = malloc(size * count);
        t->shared = (u32)place & CLUSTER_OFFSET, t->reduction = how.reduction, t->type = how.type;
        for (u32 c = 0; c < count; c++) memcpy(t->read + c * size, &values[32 * c + l], size);
    }
}

int bulk_completes_at(const struct block *b, const u64 *object) {
    for (u32 i = 0; b->bulk && i < b->bulk->count; i++)
        if (b->bulk->in_flight[i].object == object) return 1;
    return 0;
}

int bulk_under_way(const struct block *b, u32 from, u32 to, u32 *site, u32 *thread) {
    for (u32 i = 0; b->bulk && i < b->bulk->count; i++) {
        const struct transfer *t = &b->bulk->in_flight[i];
        if (!t->object || t->to < b->shared || t->to - t->shared != b->shared || t->shared >= to || t->shared + t->bytes <= from) continue;
        *site = t->site, *thread = 32 * t->warp + t->lane;
        return 1;
    }
    return 0;
}

/* ---- bulk groups ---------------------------------------------------------------------------------------------------- */

void rt_bulk_commit(struct warp *w, u32 m) {
    struct bulk *q = bulk_of(w->block);
    for (u32 todo = m; todo; todo &= todo - 1) q->group[32 * w->index + lowest_lane(todo)]++;
}

void rt_bulk_wait(struct warp *w, u32 pending, int only_read, u32 m) {
    struct bulk *q = bulk_of(w->block);
    for (u32 i = q->count; i--;) {
        struct transfer *t = &q->in_flight[i];
        if (t->object || t->warp != w->index || !(m >> t->lane & 1) || q->group[32 * t->warp + t->lane] - t->group <= pending) continue;
        if (!only_read) arrive(w->block, i);
        else if (!t->read) {
            t->read = memcpy(malloc(t->bytes + 128), t->from, (t->bytes + 127) & ~127u); /* a swizzle moves chunks within 128 bytes */
            if (t->reads) read_ends(w, t->reads);
        }
    }
}
