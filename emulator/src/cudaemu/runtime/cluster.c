/* Clusters of blocks (PTX ISA, "Cluster of Cooperative Thread Arrays").
 *
 * One worker runs all blocks of a cluster in turn, so they access each other's shared memory like their own. A block that
 * has ended keeps its memory until the whole cluster has ended, but an access to this memory is a fault, as it can be on a
 * GPU. An access before the block's end is an error, too, if nothing made the block wait for it: cluster_check_end reports
 * it. */

#include "emu.h"
#include <stdlib.h>

u64 cluster_place(const struct launch *l, u64 number, u32 rank) {
    u64 at[3];
    for (u32 d = 0; d < 3; d++) {
        const u64 clusters = l->grid[d] / l->cluster[d];
        at[d] = number % clusters * l->cluster[d] + rank % l->cluster[d];
        number /= clusters, rank /= l->cluster[d];
    }
    return (at[2] * l->grid[1] + at[1]) * l->grid[0] + at[0];
}

struct block *cluster_leave(struct block *b) {
    struct cluster *c = b->cluster;
    b->pool_next = NULL;
    if (!c) return b;
    if (++c->ended < c->size) return NULL;
    for (u32 i = 0; i < c->size; i++) c->blocks[i]->pool_next = i + 1 < c->size ? c->blocks[i + 1] : NULL, c->blocks[i]->cluster = NULL;
    b = c->blocks[0];
    free(c);
    return b;
}

struct block *cluster_block(struct block *b, u64 address) {
    const u64 rank = (address >> 24) - 1;
    if (!b->cluster) return rank == 0 ? b : NULL;
    if (rank >= b->cluster->size) return NULL;
    struct block *peer = b->cluster->blocks[rank];
    return peer->done == peer->warp_count ? NULL : peer;
}

void cluster_check_end(struct block *b) {
    const struct visit v = b->visit;
    if (!v.w || !b->cluster || !first_time(b->launch->module->info, v.site, ~3u)) return;
    finding(v.w, v.site, v.lane, "memory", "cluster_block_may_end", "peer=%u", b->warps[0].cluster_rank);
}

/* ---- the barrier ---------------------------------------------------------------------------------------------------- */

static void settle(struct cluster *c) {
    u32 alive = 0;
    for (u32 i = 0; i < c->size; i++) alive += c->blocks[i]->threads_alive;
    if (c->arrived < alive) return;
    c->arrived = 0, c->phase++, c->completed = order_next();
    for (u32 i = 0; i < c->size; i++) makes_progress(c->blocks[i]), barrier_orders(c->blocks[i]);
}

void rt_cluster_arrive(struct warp *w, u32 m) {
    struct cluster *c = w->block->cluster;
    w->step++;
    if (!c) {
        barrier_orders(w->block);
        return;
    }
    w->cluster_phase = c->phase;
    c->arrived += (u32)__builtin_popcount(m);
    settle(c);
}

void rt_cluster_wait(struct warp *w, u32 site) {
    struct block *b = w->block;
    struct cluster *c = b->cluster;
    while (c && c->phase == w->cluster_phase) {
        settle(c);
        if (c->phase != w->cluster_phase) break;
        w->asked_in_vain = 1;
        if (++b->asked_in_vain > VAIN_MAXIMUM)
            rt_fault(w, site, lowest_lane(w->live), cudaErrorLaunchTimeout, "deadlock_cluster", "arrived=%u", c->arrived);
        rt_nanosleep(w, 0);
    }
    w->synced = b->stamp;
    if (!c) return;
    b->cluster_synced = c->completed;
    if (b->visit.phase <= w->cluster_phase) b->visit.w = NULL;
}
