/* Blocks in memory: their warps, stacks, shared and local memory, which the next blocks of a worker reuse. */

#define _GNU_SOURCE
#include "schedule.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

u8 *map_pages(u64 bytes) {
    u8 *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        fprintf(stderr, "emulator: out of memory for a block's threads\n");
        _exit(125);
    }
    return p;
}

void release_block_memory(struct worker *k) {
    while (k->free_blocks) {
        struct block *b = k->free_blocks;
        k->free_blocks = b->pool_next;
        for (u32 i = 0; i < k->capacity_warps; i++) munmap(b->fibers[i].stack - GUARD_BYTES, FIBER_STACK + GUARD_BYTES);
        munmap(b->shared, k->capacity_shared + RESERVED_GAP + 4096);
        munmap(b->local, (u64)k->capacity_warps * k->capacity_local * 32 + 4096);
        shadow_end(b);
        copies_end(b), mbarrier_release(b), bulk_release(b), wgmma_release(b);
        free(b->warps), free(b->fibers), free(b->state), free(b->waits_at), free(b->wait_site), free(b);
    }
}

struct block *take_block(struct worker *k) {
    if (k->free_blocks) {
        struct block *b = k->free_blocks;
        k->free_blocks = b->pool_next;
        return b;
    }
    u32 n = k->capacity_warps;
    struct block *b = calloc(1, sizeof *b);
    b->warps = aligned_alloc(64, (sizeof(struct warp) * n + 63) & ~63ull);
    b->fibers = calloc(n, sizeof *b->fibers);
    b->state = calloc(n, 1), b->waits_at = calloc(n, 1), b->wait_site = calloc(n, 4);
    for (u32 i = 0; i < n; i++) {
        u8 *p = map_pages(FIBER_STACK + GUARD_BYTES);
        mprotect(p, GUARD_BYTES, PROT_NONE);
        b->fibers[i].stack = p + GUARD_BYTES;
    }
    b->shared = map_pages(k->capacity_shared + RESERVED_GAP + 4096);
    b->local = map_pages((u64)n * k->capacity_local * 32 + 4096);
    return b;
}

static void warp_main(void *argument) {
    struct warp *w = argument;
    w->block->launch->kernel->run(w, w->live, NULL);
    if (w->watch) values_end_warp(w);
    leave_warp(w, WARP_DONE);
}

void start_block(struct worker *k, struct block *b, struct launch *l, u64 index) {
    u32 n = l->warps;
    b->launch = l, b->worker = k, b->warp_count = n, b->done = 0, b->current = 0, b->index = index, b->polls = b->waits = 0, b->asked_in_vain = 0;
    b->threads_alive = l->threads;
    memset(b->barriers, 0, sizeof b->barriers);
    memset(b->shared, 0, l->shared_bytes);
    memset(b->shared + k->capacity_shared + RESERVED_GAP, 0, RESERVED_BYTES); /* mapped by take_block */
    if (l->module->info->watched) shadow_start(b);
    b->cluster = NULL, b->visit.w = NULL, b->waited = 0;
    copies_start(b), mbarrier_start(b), bulk_start(b), wgmma_start(b);
    /* Threads usually have the same indices as in the previous block. Computing the indices again for every block took a
     * sixth of the time of tiled.cu. */
    int reshaped = memcmp(b->indexed, l->block, sizeof l->block);
    memcpy(b->indexed, l->block, sizeof l->block);
    u32 cta[3] = {(u32)(index % l->grid[0]), (u32)(index / l->grid[0] % l->grid[1]), (u32)(index / l->grid[0] / l->grid[1])};
    for (u32 i = 0; i < n; i++) {
        struct warp *w = &b->warps[i];
        memset(w, 0, offsetof(struct warp, tid));
        w->sites = k->sites;
        w->shared = b->shared, w->shared_size = l->shared_bytes, w->reserved = k->capacity_shared + RESERVED_GAP;
        w->local = b->local + (u64)i * k->capacity_local * 32, w->local_size = k->capacity_local;
        w->alive = &b->threads_alive, w->params = l->params, w->fuel = l->fuel, w->index = i, w->block = b;
        u32 left = l->threads - i * 32;
        w->live = left >= 32 ? ~0u : (1u << left) - 1;
        w->linear = l->block[0] % 32 == 0;
        for (int d = 0; d < 3; d++) w->ntid[d] = l->block[d], w->nctaid[d] = l->grid[d], w->ctaid[d] = cta[d];
        for (u32 lane = 0; lane < 32 && reshaped; lane++) {
            u32 t = i * 32 + lane;
            w->tid[0][lane] = t % l->block[0];
            w->tid[1][lane] = t / l->block[0] % l->block[1];
            w->tid[2][lane] = t / l->block[0] / l->block[1];
        }
        for (int d = 0; d < 3; d++) w->tid0[d] = w->tid[d][0], w->cluster[d] = l->cluster[d], w->in_cluster[d] = cta[d] % l->cluster[d];
        w->is_in_cluster = l->has_clusters;
        w->counters = k->counters;
        w->environment[0] = (u32)(l->workspace >> 32), w->environment[1] = (u32)l->workspace;
        w->dynamic_shared = l->dynamic_shared, w->smid = (u32)(index % gpu->multiprocessors), w->grid_id = l->id;
        b->fibers[i].stack_pointer = fiber_prepare(b->fibers[i].stack + FIBER_STACK, warp_main, w);
        b->state[i] = WARP_READY;
    }
    counters_block(b);
}
