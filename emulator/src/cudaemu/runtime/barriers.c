/* The barriers of a block: __syncthreads() and named barriers, at which warps give up the processor. */

#include "schedule.h"

void barrier_orders(struct block *b) {
    if (!is_watched(b)) return;
    shadow_end_epoch(b);
    order_barrier(b);
}

static void barrier_release(struct block *b, u32 id) {
    struct barrier *r = &b->barriers[id];
    r->last_count = r->reduce_count;
    r->last_any = r->reduce_count > 0;
    r->last_all = r->reduce_count == r->reduce_lanes;
    r->arrived = r->reduce_count = r->reduce_lanes = 0;
    r->expected = 0;
    r->generation++;
    b->asked_in_vain = 0;
    barrier_orders(b);
    for (u32 i = 0; i < b->warp_count; i++)
        if (b->state[i] == WARP_WAITS && b->waits_at[i] == id) b->state[i] = WARP_READY, b->warps[i].synced = b->stamp;
}

u32 barrier_expected(struct block *b, u32 id) { return b->barriers[id].expected ? b->barriers[id].expected : b->threads_alive; }

static void arrive(struct warp *w, u32 site, u32 id, u32 threads, u32 lanes) {
    struct block *b = w->block;
    if (id > 15) rt_fault(w, site, lowest_lane(lanes), cudaErrorIllegalInstruction, "barrier_number", "id=%u", id);
    struct barrier *r = &b->barriers[id];
    w->step++;
    if (w->waits) syncwarp_unmet(w);
    if (threads) {
        if (threads % 32) rt_fault(w, site, lowest_lane(lanes), cudaErrorIllegalInstruction, "barrier_threads", "threads=%u", threads);
        if (r->expected && r->expected != threads)
            finding(w, site, lowest_lane(lanes), "sync", "barrier_counts_differ", "id=%u\nthreads=%u\nelsewhere=%u", id, threads, r->expected);
        r->expected = threads;
    }
    /* With a count, a whole warp counts as 32 threads, even the last, incomplete one of a block. */
    r->arrived += threads && lanes == w->live ? 32 : (u32)__builtin_popcount(lanes);
}

void rt_barrier(struct warp *w, u32 site, u32 id, u32 threads, u32 lanes, int aligned) {
    struct block *b = w->block;
    (void)aligned;
    arrive(w, site, id, threads, lanes);
    if (b->barriers[id].arrived >= barrier_expected(b, id)) {
        barrier_release(b, id);
        w->synced = b->stamp;
        return;
    }
    b->state[w->index] = WARP_WAITS;
    b->waits_at[w->index] = (u8)id;
    b->wait_site[w->index] = site;
    yield_warp(w);
}

void rt_barrier_arrive(struct warp *w, u32 site, u32 id, u32 threads, u32 lanes) {
    arrive(w, site, id, threads, lanes);
    if (w->block->barriers[id].arrived >= barrier_expected(w->block, id)) barrier_release(w->block, id);
}

u32 rt_barrier_reduce(struct warp *w, u32 site, u32 id, u32 threads, u32 lanes, u32 predicate, int how) {
    struct block *b = w->block;
    struct barrier *r = &b->barriers[id & 15];
    r->reduce_count += (u32)__builtin_popcount(predicate & lanes);
    r->reduce_lanes += (u32)__builtin_popcount(lanes);
    rt_barrier(w, site, id, threads, lanes, 1);
    return how == 0 ? r->last_count : how == 1 ? -(u32)r->last_all : -(u32)r->last_any;
}

void barriers_after_exit(struct block *b) {
    for (u32 id = 0; id < 16; id++) {
        const struct barrier *r = &b->barriers[id];
        int waiting = 0;
        for (u32 i = 0; i < b->warp_count && r->arrived && !r->expected && r->arrived >= b->threads_alive; i++)
            waiting |= b->state[i] == WARP_WAITS && b->waits_at[i] == id;
        if (waiting) barrier_release(b, id);
    }
}
