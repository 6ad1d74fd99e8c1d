/* Running a grid's blocks. Worker threads run the blocks, and each warp of a block is a fiber of its worker.
 *
 * A worker takes blocks in order. It runs a block's warps in turn; a warp gives up the processor at a barrier, when it
 * ends, and every FUEL loop iterations. A block whose warps have all used up that many iterations several times without
 * progress may be waiting for another block. So its worker starts another block and alternates between its blocks, as a
 * GPU keeps several blocks resident.
 *
 * When no warp of a block can run and not all have ended, the block is deadlocked. The runtime then reports where each
 * warp waits instead of hanging. The first fault stops the whole launch. */

#include "schedule.h"
#include <sched.h>
#include <stdlib.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define WAITS_BEFORE_COMPANY 1024 /* like POLLS_BEFORE_COMPANY: turns that a warp gives up in loops where threads may wait */
#define POLLS_BEFORE_LEAVING (POLLS_BEFORE_COMPANY * FUEL / l->fuel) /* until the launch leaves the thread that submitted it */
#define WAITS_BEFORE_LEAVING 16384
#define RESIDENT_MAXIMUM 2048

int schedule_kind;
u64 schedule_seed, time_limit_ns;
clockid_t limit_clock = CLOCK_MONOTONIC;

void yield_warp(struct warp *w) {
    struct block *b = w->block;
    fiber_switch(&b->fibers[w->index].stack_pointer, b->worker->scheduler_stack_pointer);
}

void leave_warp(struct warp *w, int state) {
    struct block *b = w->block;
    b->state[w->index] = (u8)state;
    yield_warp(w);
    __builtin_unreachable();
}

u64 schedule_seed_of(u64 index) { return (schedule_seed * 2654435761u + index) * 0x9e3779b97f4a7c15ull | 1; }

u32 random_below(u64 *state, u32 limit) {
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (u32)((*state >> 33) * limit >> 31);
}

/* Called when a warp gives up its turn. Unless it waits at a barrier object itself, warps that do may still be released. */
static void note_turn(struct warp *w) {
    struct block *b = w->block;
    if (w->asked_in_vain) return;
    b->asked_in_vain = 0;
    for (u32 i = 0; b->cluster && i < b->cluster->size; i++) b->cluster->blocks[i]->asked_in_vain = 0;
}

/* Returns 0 if the back edge was only noted. */
static int poll(struct warp *w, const struct edge *e, u32 inside) {
    struct block *b = w->block;
    w->fuel = b->launch->fuel;
    if (!progress_note(w, e)) return 0;
    const u64 running_ns = time_limit_ns ? clock_ns(limit_clock) - b->launch->limit_start_ns : 0;
    progress_poll(w, running_ns > time_limit_ns / 2);
    const u32 site = progress_site(w, e->form->ways[e->from].site);
    note_turn(w);
    w->asked_in_vain = 0;
    if (b->launch->abort) leave_warp(w, WARP_DEAD);
    b->polls++;
    if (running_ns > time_limit_ns) {
        double seconds = (double)running_ns / 1e9;
        u32 outside = w->live & ~inside;
        if (outside)
            rt_fault(w, site, lowest_lane(w->live & inside), cudaErrorLaunchTimeout, "endless_in_function", "seconds=%.1f\nlanes:0x%08x", seconds, outside);
        rt_fault(w, site, lowest_lane(w->live), cudaErrorLaunchTimeout, "endless_loop", "seconds=%.1f", seconds);
    }
    yield_warp(w);
    return 1;
}

/* Called when the program's time is nearly up. A launch that has used half of a kernel's limit is stopped at its next poll. */
int schedule_hurry(const struct launch *l) {
    u64 running = clock_ns(limit_clock) - l->limit_start_ns;
    if (!time_limit_ns || running < time_limit_ns / 2) return 0;
    time_limit_ns = running;
    return 1;
}

void rt_poll(struct warp *w, struct edge e) { poll(w, &e, ~0u); }

/* Called in a loop in which threads may wait for others; gives up the processor more often than rt_poll. `inside` are the
 * warp's lanes that can continue while others wait: those in the same call. */
void rt_wait(struct warp *w, struct edge e, u32 inside) {
    if (!w->fuel && (poll(w, &e, inside) || w->watched_edges % WARP_PATIENCE)) return;
    w->block->waits++;
    note_turn(w);
    if (w->block->launch->abort) leave_warp(w, WARP_DEAD);
    else yield_warp(w);
}

void rt_nanosleep(struct warp *w, u32 ns) {
    (void)ns;
    if (w->block->launch->abort) leave_warp(w, WARP_DEAD);
    w->block->polls++;
    note_turn(w);
    yield_warp(w);
}

void rt_fence(struct warp *w) {
    if (is_watched(w->block)) order_fence(w->block);
}

/* The number of the change to try in a program that has many (checking/repairs), for host code and, as %envreg0, for
 * kernels; 0 for none. */
u32 grader_change_of_host(void) {
    static i64 number = -1;
    if (number < 0) {
        const char *text = getenv("GRADER_EMULATOR_CHANGE");
        number = text ? (u32)strtoul(text, NULL, 10) : 0;
    }
    return (u32)number;
}

u32 rt_multiprocessors(void) { return gpu->multiprocessors; }
u32 rt_shared_bytes(const struct warp *w) { return w->shared_size - SHARED_START; }
u64 rt_clock(void) {
#if defined(__x86_64__)
    return __rdtsc();
#else
    return now_ns();
#endif
}
u64 rt_nanoseconds(void) { return now_ns(); }

/* The function at an address, which uses the rows of its caller: their sizes must be those that it declares. */
device_function rt_function(struct warp *w, u32 site, u32 lane, u64 address, const u32 *sizes, u32 count) {
    const struct module_info *info = w->block->launch->module->info;
    const struct function_info *f = info->functions;
    u32 i = 0;
    while (i < info->function_count && *f[i].address != address) i++;
    if (i < info->function_count && f[i].size_count == count && !memcmp(f[i].sizes, sizes, count * sizeof *sizes)) return f[i].run;
    const char *how = i < info->function_count ? "prototype" : address ? "host" : "null";
    rt_fault(w, site, lane, cudaErrorIllegalInstruction, "bad_function_pointer", "how:%s", how);
    return NULL;
}

static void deadlocked(struct block *b) {
    u32 first = 0, waiting = 0;
    for (u32 i = 0; i < b->warp_count; i++)
        if (b->state[i] == WARP_WAITS && !waiting++) first = i;
    struct warp *w = &b->warps[first];
    struct launch *l = b->launch;
    u32 id = b->waits_at[first];
    if (!__atomic_exchange_n(&l->abort, 1, __ATOMIC_SEQ_CST) && !l->error) {
        l->error = cudaErrorLaunchTimeout;
        finding(w, b->wait_site[first], lowest_lane(w->live), "sync", "deadlock_barrier", "waiting=%u\nwarps=%u\nid=%u\nexpected=%u\narrived=%u", waiting, b->warp_count, id, barrier_expected(b, id), b->barriers[id].arrived);
    }
}

enum slice { SLICE_DONE, SLICE_SPINS, SLICE_STOPPED };

/* Gives each of the block's warps one turn. */
static enum slice run_slice(struct worker *k, struct block *b) {
    static __thread u64 random;
    if (schedule_kind == 2 && !random) random = schedule_seed * 2654435761u + b->index + 1;
    int progress = 0;
    u32 n = b->warp_count, alive = b->threads_alive;
    u32 offset = schedule_kind == 2 ? random_below(&random, n) : 0;
    for (u32 step = 0; step < n; step++) {
        u32 i = schedule_kind == 1 ? n - 1 - step : (step + offset) % n;
        if (b->state[i] != WARP_READY) continue;
        progress = 1;
        k->running = &b->fibers[i];
        fiber_switch(&k->scheduler_stack_pointer, b->fibers[i].stack_pointer);
        if (b->state[i] == WARP_DONE) {
            b->done++;
            if (b->warps[i].waits) syncwarp_unmet(&b->warps[i]);
            lanes_exit(&b->warps[i], b->warps[i].live);
        }
        if (b->threads_alive != alive) alive = b->threads_alive, barriers_after_exit(b);
        if (b->launch->abort) return SLICE_STOPPED;
    }
    if (b->done == n) {
        bulk_finish(b);
        cluster_check_end(b);
        if (is_watched(b)) shadow_end_epoch(b);
        return SLICE_DONE;
    }
    if (!progress) {
        deadlocked(b);
        return SLICE_STOPPED;
    }
    return SLICE_SPINS;
}

static int claim(struct launch *l, u64 *index) {
    u64 i = __atomic_fetch_add(&l->next, 1, __ATOMIC_SEQ_CST);
    const u64 parts = l->blocks / l->cluster_size;
    if (i >= l->sampled) return 0;
    if (l->sampled < parts) i = (2 * i + 1) * parts / (2 * l->sampled); /* spread evenly */
    *index = schedule_kind == 1 ? parts - 1 - i : i;
    return 1;
}

/* Whether the block's warps have run in loops for a long time without other progress. */
static int spins(const struct block *b) {
    return b->polls >= b->launch->patience * b->warp_count || b->waits >= WAITS_BEFORE_COMPANY * b->warp_count;
}

static int all_spin(const struct worker *k) {
    for (u32 i = 0; i < k->active_count; i++)
        if (!spins(k->active[i])) return 0;
    return 1;
}

/* Whether all resident blocks have spun for so long that they may be waiting for something outside this launch. */
static int get_nowhere(const struct worker *k, const struct launch *l) {
    if ((k->more && k->active_count < RESIDENT_MAXIMUM) || !k->active_count || !all_spin(k)) return 0;
    u64 polls = 0, waits = 0;
    for (u32 i = 0; i < k->active_count; i++) polls += k->active[i]->polls, waits += k->active[i]->waits;
    u32 warps = k->active[0]->warp_count;
    return polls >= POLLS_BEFORE_LEAVING * warps || waits >= WAITS_BEFORE_LEAVING * warps;
}

void prepare_worker(struct worker *k, struct launch *l) {
    const struct module_info *info = l->module->info;
    k->launch = l, k->more = 1, k->is_watching = 0, k->completed = k->proved = 0;
    if (k->site_capacity < info->site_count + 1) {
        free(k->sites);
        k->site_capacity = info->site_count + 64;
        k->sites = malloc(k->site_capacity * sizeof *k->sites);
        free(k->site_allocations);
        k->site_allocations = is_watching ? malloc(k->site_capacity * sizeof *k->site_allocations) : NULL;
    }
    memset(k->sites, 0, (info->site_count + 1) * sizeof *k->sites);
    counters_start(k, l);
    if (is_watching) memset(k->site_allocations, 0, (info->site_count + 1) * sizeof *k->site_allocations);
    u32 local = l->kernel->local_bytes ? ((l->kernel->local_bytes + 1023) & ~1023u) + 16384 : 64;
    if (k->capacity_warps < l->warps || k->capacity_shared < l->shared_bytes || k->capacity_local < local) {
        release_block_memory(k);
        if (k->capacity_warps < l->warps) k->capacity_warps = l->warps;
        if (k->capacity_shared < l->shared_bytes) k->capacity_shared = (l->shared_bytes + 4095) & ~4095u;
        if (k->capacity_local < local) k->capacity_local = local;
    }
}

static struct block *activate(struct worker *k, struct launch *l, u64 index) {
    MAKE_ROOM(k->active, k->active_count, k->active_capacity);
    struct block *b = take_block(k);
    start_block(k, b, l, index);
    return k->active[k->active_count++] = b;
}

/* Starts a block, or all blocks of a cluster. */
static void start_further_block(struct worker *k, struct launch *l) {
    u64 index;
    k->more = claim(l, &index);
    if (!k->more) return;
    if (l->cluster_size == 1) {
        activate(k, l, index);
        return;
    }
    struct cluster *c = calloc(1, sizeof *c);
    c->size = l->cluster_size;
    for (u32 rank = 0; rank < c->size; rank++) {
        struct block *b = c->blocks[rank] = activate(k, l, cluster_place(l, index, rank));
        b->cluster = c;
        for (u32 i = 0; i < b->warp_count; i++) b->warps[i].cluster_rank = rank;
    }
}

static enum slice run_watched_slice(struct worker *k, struct block *b) {
    if (!is_watched(b)) return run_slice(k, b);
    watch_lock();
    enum slice s = run_slice(k, b);
    watch_unlock();
    return s;
}

int run_blocks(struct worker *k, struct launch *l, int stay) {
    while (!l->abort) {
        int wants = k->active_count == 0 || (k->active_count < RESIDENT_MAXIMUM && all_spin(k));
        if (wants && k->more) start_further_block(k, l);
        if (!k->active_count) break;
        for (u32 i = 0; i < k->active_count && !l->abort; i++) {
            struct block *b = k->active[i];
            enum slice s;
            do s = run_watched_slice(k, b);
            while (s == SLICE_SPINS && k->active_count == 1 && !(k->more && spins(b)) && !get_nowhere(k, l) && !l->abort);
            if (s == SLICE_DONE) {
                counters_block_done(b);
                for (struct block *gone = cluster_leave(b), *next; gone; gone = next) next = gone->pool_next, gone->pool_next = k->free_blocks, k->free_blocks = gone;
                k->active[i--] = k->active[--k->active_count];
            }
        }
        if (!l->abort && get_nowhere(k, l)) {
            if (!stay) return 0;
            if (!l->gets_nowhere) say_nowhere(l);
            if (is_hopeless(k, l)) break;
            sched_yield();
        }
    }
    for (u32 i = 0; i < k->active_count; i++) k->active[i]->pool_next = k->free_blocks, k->free_blocks = k->active[i];
    k->active_count = 0;
    counters_stop(k, l);
    return 1;
}
