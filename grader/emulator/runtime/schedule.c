/* Running a grid: worker threads run the blocks, and each warp of a block is a fiber of its worker.
 *
 * A worker takes blocks in order. It runs a block's warps in turn; a warp gives up the processor at a barrier, when it
 * ends, and every FUEL loop iterations. A block whose warps have all used up that many iterations several times without
 * progress may be waiting for another block. So its worker starts another block and alternates between its blocks, as a
 * GPU has several blocks resident.
 *
 * When no warp of a block can run and not all have ended, the block is deadlocked. The runtime then reports where each
 * warp waits instead of hanging. The first fault stops the whole launch.
 *
 * A launch runs on the thread that submits it, as worker 0, with the help of the pool. When all resident blocks of a
 * worker spin and no other can be started, they may be waiting for the host or for another stream's kernel. Then the
 * submitting thread leaves, and work.c lets another thread go on with worker 0's blocks. The pool's threads stay with
 * such a launch to its end; meanwhile other launches run without them. */

#define _GNU_SOURCE
#include "async.h"
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define POLLS_BEFORE_COMPANY 64
#define WAITS_BEFORE_COMPANY 1024 /* turns that warps give up in loops where threads may wait */
#define POLLS_BEFORE_LEAVING (POLLS_BEFORE_COMPANY * FUEL / l->fuel)
#define WAITS_BEFORE_LEAVING 16384
#define RESIDENT_MAXIMUM 2048

u32 worker_count;
static struct worker *pool, *spare;
static struct launch *pool_launch;
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_work = PTHREAD_COND_INITIALIZER, pool_done = PTHREAD_COND_INITIALIZER;
static u64 pool_generation;
static u32 pool_running;
static u64 time_limit_ns;
static int schedule_kind; /* 0 lockstep, 1 reverse, 2 random */
static u64 schedule_seed;

/* ---- warps --------------------------------------------------------------------------------------------------------- */

static void warp_main(void *argument) {
    struct warp *w = argument;
    w->block->launch->kernel->run(w, w->live, NULL);
    leave_warp(w, WARP_DONE);
}

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

void barrier_orders(struct block *b) {
    if (!b->launch->module->info->sanitize) return;
    shadow_end_epoch(b);
    if (b->launch->module->info->sanitize & SANITIZE_RACE) order_barrier(b);
}

u64 schedule_seed_of(u64 index) { return (schedule_seed * 2654435761u + index) * 0x9e3779b97f4a7c15ull | 1; }

u32 random_below(u64 *state, u32 limit) {
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (u32)((*state >> 33) * limit >> 31);
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

static u32 barrier_expected(struct block *b, u32 id) { return b->barriers[id].expected ? b->barriers[id].expected : b->threads_alive; }

static void arrive(struct warp *w, u32 site, u32 id, u32 threads, u32 lanes) {
    struct block *b = w->block;
    if (id > 15) rt_fault(w, site, lowest_lane(lanes), cudaErrorIllegalInstruction, "barrier number %u: there are 16, 0 to 15", id);
    struct barrier *r = &b->barriers[id];
    w->step++;
    if (w->waits) syncwarp_unmet(w);
    if (threads) {
        if (threads % 32) rt_fault(w, site, lowest_lane(lanes), cudaErrorIllegalInstruction, "a barrier for %u threads: the number must be a multiple of 32", threads);
        if (r->expected && r->expected != threads)
            diagnose(w, site, lowest_lane(lanes), "error", "sync", "Give all calls of one barrier the same number of threads.",
                     "barrier %u is used for %u threads here and for %u elsewhere", id, threads, r->expected);
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

/* A warp gives up its turn, and does not wait at a barrier object: those that do may still be released. */
static void is_busy(struct warp *w) {
    struct block *b = w->block;
    if (w->asked_in_vain) return;
    b->asked_in_vain = 0;
    for (u32 i = 0; b->cluster && i < b->cluster->size; i++) b->cluster->blocks[i]->asked_in_vain = 0;
}

static void poll(struct warp *w, u32 site, u32 inside) {
    struct block *b = w->block;
    w->fuel = b->launch->fuel;
    is_busy(w);
    w->asked_in_vain = 0;
    if (b->launch->abort) leave_warp(w, WARP_DEAD);
    b->poll_site[w->index] = site;
    b->polls++;
    if (time_limit_ns && now_ns() - b->launch->start_ns > time_limit_ns) {
        double seconds = (double)(now_ns() - b->launch->start_ns) / 1e9;
        u32 outside = w->live & ~inside;
        if (outside)
            rt_fault(w, site, lowest_lane(w->live & inside), cudaErrorLaunchTimeout,
                     "still running after %.1f s; this thread waits in the loop at this line, in a function, while lanes 0x%08x of its warp are not in the "
                     "same call: where they are what it waits for, the emulator cannot run them, nor can a GPU before compute capability 7.0; take a lock with one "
                     "lane of a warp, or make the function __forceinline__",
                     seconds, outside);
        rt_fault(w, site, lowest_lane(w->live), cudaErrorLaunchTimeout, "still in the loop at this line after %.1f s, which may never end", seconds);
    }
    yield_warp(w);
}

/* The program's time is nearly up: a launch that took most of it is stopped at its next look at the clock. */
int schedule_hurry(const struct launch *l) {
    u64 running = now_ns() - l->start_ns;
    if (!time_limit_ns || running < time_limit_ns / 2) return 0;
    time_limit_ns = running;
    return 1;
}

void rt_poll(struct warp *w, u32 site) { poll(w, site, ~0u); }

/* Called in a loop in which threads may wait for others; it gives up the processor more often. `inside` are the warp's
 * lanes that can go on while others wait: those in the same call. */
void rt_wait(struct warp *w, u32 site, u32 inside) {
    w->block->waits++;
    is_busy(w);
    if (!w->fuel) poll(w, site, inside);
    else if (w->block->launch->abort) leave_warp(w, WARP_DEAD);
    else yield_warp(w);
}

void rt_nanosleep(struct warp *w, u32 ns) {
    (void)ns;
    if (w->block->launch->abort) leave_warp(w, WARP_DEAD);
    w->block->polls++;
    is_busy(w);
    yield_warp(w);
}

void rt_fence(struct warp *w) {
    if (w->block->launch->module->info->sanitize & SANITIZE_RACE) order_fence(w->block);
}

u32 rt_multiprocessors(void) { return gpu->multiprocessors; }
u64 rt_clock(void) {
#if defined(__x86_64__)
    return __rdtsc();
#else
    return now_ns();
#endif
}
u64 rt_nanoseconds(void) { return now_ns(); }

device_function rt_function(struct warp *w, u32 site, u32 lane, u64 address) {
    const struct module_info *info = w->block->launch->module->info;
    for (u32 i = 0; i < info->function_count; i++)
        if (*info->functions[i].address == address) return info->functions[i].run;
    rt_fault(w, site, lane, cudaErrorIllegalInstruction, "a call through the pointer 0x%llx, which is not a device function%s", (unsigned long long)address,
             address ? ": was its address taken on the host?" : " (it is null)");
    return NULL;
}

static void fault(struct warp *w, u32 site, u32 lane, int code, const char *text) {
    struct launch *l = w->block->launch;
    static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&first);
    if (!l->abort) {
        int is_first = !w->block->index && !w->index && !lane;
        const char *advice = strstr(text, " past the end of the dynamic ") ? "Ask for more in the launch (the third parameter in <<<…>>>), or correct the index."
                             : code == cudaErrorIllegalAddress   ? is_first ? "Check the index against the size of the array." : "Check the index against the size of the array, for the last block and the last thread too."
                             : code == cudaErrorMisalignedAddress ? "Vector types such as float4 need addresses that are multiples of their size."
                             : code == cudaErrorLaunchTimeout     ? "Check the loop's condition, and whether it waits for a thread or block that cannot run."
                             : code == cudaErrorIllegalInstruction && l->module->info->sites[site].kind != SITE_CALL
                                 ? "Check how the barrier is set up: by one thread, before any other uses it, and for as many threads as arrive at it."
                                 : "";
        l->error = code;
        l->abort = 1;
        diagnose(w, site, lane, "error", code == cudaErrorLaunchTimeout ? "sync" : "memory", advice, "%s", text);
    }
    pthread_mutex_unlock(&first);
}

#define FORMATTED(text)                                                                                                \
    char text[1024];                                                                                                   \
    va_list list;                                                                                                      \
    va_start(list, format);                                                                                            \
    vsnprintf(text, sizeof text, format, list);                                                                        \
    va_end(list)

void rt_fault(struct warp *w, u32 site, u32 lane, int code, const char *format, ...) {
    FORMATTED(text);
    fault(w, site, lane, code, text);
    leave_warp(w, WARP_DEAD);
}

void diagnose_fault(struct warp *w, u32 site, u32 lane, int code, const char *format, ...) {
    FORMATTED(text);
    fault(w, site, lane, code, text);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------------ */

static u8 *map(u64 bytes) {
    u8 *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        fprintf(stderr, "emulator: out of memory for a block's threads\n");
        _exit(125);
    }
    return p;
}

static void release_block_memory(struct worker *k) {
    while (k->free_blocks) {
        struct block *b = k->free_blocks;
        k->free_blocks = b->pool_next;
        for (u32 i = 0; i < k->capacity_warps; i++) munmap(b->fibers[i].stack - GUARD_BYTES, FIBER_STACK + GUARD_BYTES);
        munmap(b->shared, k->capacity_shared + 4096);
        munmap(b->local, (u64)k->capacity_warps * k->capacity_local * 32 + 4096);
        shadow_end(b);
        copies_end(b), mbarrier_release(b), bulk_release(b), wgmma_release(b);
        free(b->warps), free(b->fibers), free(b->state), free(b->waits_at), free(b->wait_site), free(b->poll_site), free(b);
    }
}

static struct block *take_block(struct worker *k) {
    if (k->free_blocks) {
        struct block *b = k->free_blocks;
        k->free_blocks = b->pool_next;
        return b;
    }
    u32 n = k->capacity_warps;
    struct block *b = calloc(1, sizeof *b);
    b->warps = aligned_alloc(64, (sizeof(struct warp) * n + 63) & ~63ull);
    b->fibers = calloc(n, sizeof *b->fibers);
    b->state = calloc(n, 1), b->waits_at = calloc(n, 1), b->wait_site = calloc(n, 4), b->poll_site = calloc(n, 4);
    for (u32 i = 0; i < n; i++) {
        u8 *p = map(FIBER_STACK + GUARD_BYTES);
        mprotect(p, GUARD_BYTES, PROT_NONE);
        b->fibers[i].stack = p + GUARD_BYTES;
    }
    b->shared = map(k->capacity_shared + RESERVED_GAP + 4096);
    b->local = map((u64)n * k->capacity_local * 32 + 4096);
    return b;
}

static void start_block(struct worker *k, struct block *b, struct launch *l, u64 index) {
    u32 n = l->warps;
    b->launch = l, b->worker = k, b->warp_count = n, b->done = 0, b->current = 0, b->index = index, b->polls = b->waits = 0, b->asked_in_vain = 0;
    b->threads_alive = l->threads;
    memset(b->barriers, 0, sizeof b->barriers);
    memset(b->shared, 0, l->shared_bytes);
    memset(b->shared + k->capacity_shared + RESERVED_GAP, 0, RESERVED_BYTES); /* take_block has mapped this */
    if (l->module->info->sanitize) shadow_start(b);
    b->cluster = NULL, b->visit.w = NULL;
    copies_start(b), mbarrier_start(b), bulk_start(b), wgmma_start(b);
    /* Threads usually have the same indices as in the previous block. Computing them anew took a sixth of tiled.cu's
     * time. */
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
}

static void deadlocked(struct block *b) {
    u32 first = 0, waiting = 0;
    for (u32 i = 0; i < b->warp_count; i++)
        if (b->state[i] == WARP_WAITS && !waiting++) first = i;
    struct warp *w = &b->warps[first];
    struct launch *l = b->launch;
    u32 id = b->waits_at[first];
    if (!__atomic_exchange_n(&l->abort, 1, __ATOMIC_SEQ_CST)) {
        l->error = cudaErrorLaunchTimeout;
        diagnose(w, b->wait_site[first], lowest_lane(w->live), "error", "sync",
                 "Every thread of the block must reach the barrier the same number of times.",
                 "deadlock: %u of %u warps wait at barrier %u for %u threads, of which %u have arrived; no other warp of the block can run", waiting,
                 b->warp_count, id, barrier_expected(b, id), b->barriers[id].arrived);
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
        if (b->threads_alive != alive) { /* waiting threads need not wait for threads that have left */
            alive = b->threads_alive;
            for (u32 id = 0; id < 16; id++)
                if (b->barriers[id].arrived && !b->barriers[id].expected && b->barriers[id].arrived >= b->threads_alive) {
                    for (u32 j = 0; j < n; j++)
                        if (b->state[j] == WARP_WAITS && b->waits_at[j] == id) {
                            barrier_release(b, id);
                            break;
                        }
                }
        }
        if (b->launch->abort) return SLICE_STOPPED;
    }
    if (b->done == n) {
        bulk_finish(b);
        cluster_check_end(b);
        if (b->launch->module->info->sanitize) shadow_end_epoch(b);
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
    if (i >= parts) return 0;
    *index = schedule_kind == 1 ? parts - 1 - i : i;
    return 1;
}

/* Notifies the thread that waits for the pool that the launch may get nowhere. */
static void say_nowhere(struct launch *l) {
    pthread_mutex_lock(&pool_lock);
    l->gets_nowhere = 1;
    pthread_cond_signal(&pool_done);
    pthread_mutex_unlock(&pool_lock);
}

/* Whether the block's warps have run in loops for a long time without reaching its end. */
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

static void prepare_worker(struct worker *k, struct launch *l) {
    const struct module_info *info = l->module->info;
    k->launch = l, k->more = 1;
    if (k->site_capacity < info->site_count + 1) {
        free(k->sites);
        k->site_capacity = info->site_count + 64;
        k->sites = malloc(k->site_capacity * sizeof *k->sites);
        free(k->site_allocations);
        k->site_allocations = shadow_checks ? malloc(k->site_capacity * sizeof *k->site_allocations) : NULL;
    }
    memset(k->sites, 0, (info->site_count + 1) * sizeof *k->sites);
    counters_start(k, l);
    if (shadow_checks) memset(k->site_allocations, 0, (info->site_count + 1) * sizeof *k->site_allocations);
    u32 local = l->kernel->local_bytes ? ((l->kernel->local_bytes + 1023) & ~1023u) + 16384 : 64;
    if (k->capacity_warps < l->warps || k->capacity_shared < l->shared_bytes || k->capacity_local < local) {
        release_block_memory(k);
        if (k->capacity_warps < l->warps) k->capacity_warps = l->warps;
        if (k->capacity_shared < l->shared_bytes) k->capacity_shared = (l->shared_bytes + 4095) & ~4095u;
        if (k->capacity_local < local) k->capacity_local = local;
    }
}

static struct block *activate(struct worker *k, struct launch *l, u64 index) {
    if (k->active_count == k->active_capacity) {
        k->active_capacity = k->active_capacity ? k->active_capacity * 2 : 16;
        k->active = realloc(k->active, k->active_capacity * sizeof *k->active);
    }
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
    const u64 number = index;
    for (u32 rank = 0; rank < c->size; rank++) {
        cluster_place(l, number, rank, &index);
        struct block *b = c->blocks[rank] = activate(k, l, index);
        b->cluster = c;
        for (u32 i = 0; i < b->warp_count; i++) b->warps[i].cluster_rank = rank;
    }
}

static enum slice run_watched_slice(struct worker *k, struct block *b) {
    if (!b->launch->module->info->sanitize) return run_slice(k, b);
    watch_lock();
    enum slice s = run_slice(k, b);
    watch_unlock();
    return s;
}

/* Runs the worker's share of a launch. Returns 1 at its end, or, unless `stay`, 0 when all its blocks spin. */
static int run_blocks(struct worker *k, struct launch *l, int stay) {
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
                for (struct block *gone = cluster_leave(b), *next; gone; gone = next) next = gone->pool_next, gone->pool_next = k->free_blocks, k->free_blocks = gone;
                k->active[i--] = k->active[--k->active_count];
            }
        }
        if (!l->abort && get_nowhere(k, l)) {
            if (!stay) return 0;
            if (!l->gets_nowhere) say_nowhere(l);
            sched_yield();
        }
    }
    for (u32 i = 0; i < k->active_count; i++) k->active[i]->pool_next = k->free_blocks, k->free_blocks = k->active[i];
    k->active_count = 0;
    counters_stop(k, l);
    return 1;
}

/* ---- workers -------------------------------------------------------------------------------------------------------------- */

/* Waking a thread can take longer than a launch's last block, or than the time until the next launch in a program with
 * many. So threads poll for this long before they sleep. */
#define WATCH_NS 50000
#define WATCH(condition)                                                                                               \
    for (u64 until = now_ns() + WATCH_NS; !(condition) && now_ns() < until;) {}

static void *worker_main(void *argument) {
    struct worker *k = argument;
    this_worker = k;
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV), sigdelset(&all, SIGBUS), sigdelset(&all, SIGFPE), sigdelset(&all, SIGILL), sigdelset(&all, SIGTRAP);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    u8 *stack = map(65536);
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = 65536}, NULL);
    for (u64 seen = 0;;) {
        WATCH(__atomic_load_n(&pool_generation, __ATOMIC_ACQUIRE) != seen);
        pthread_mutex_lock(&pool_lock);
        while (pool_generation == seen) pthread_cond_wait(&pool_work, &pool_lock);
        seen = pool_generation;
        struct launch *l = pool_launch;
        pthread_mutex_unlock(&pool_lock);
        prepare_worker(k, l);
        run_blocks(k, l, 1);
        pthread_mutex_lock(&pool_lock);
        if (--pool_running == 0) pthread_cond_signal(&pool_done);
        pthread_mutex_unlock(&pool_lock);
    }
    return NULL;
}

static void start_workers(void) {
    const char *wanted = getenv("GRADER_EMULATOR_THREADS");
    cpu_set_t set;
    long n = wanted ? atol(wanted) : sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    worker_count = (u32)(n < 1 ? 1 : n > 256 ? 256 : n);
    const char *limit = getenv("GRADER_EMULATOR_KERNEL_SECONDS");
    if (limit) time_limit_ns = (u64)(atof(limit) * 1e9);
    const char *schedule = getenv("GRADER_EMULATOR_SCHEDULE");
    if (schedule && strcmp(schedule, "reverse") == 0) schedule_kind = 1;
    if (schedule && strncmp(schedule, "random:", 7) == 0) schedule_kind = 2, schedule_seed = strtoull(schedule + 7, NULL, 10) + 1;
    pool = calloc(worker_count, sizeof *pool);
    for (u32 i = 1; i < worker_count; i++) {
        pool[i].index = i;
        pthread_create(&pool[i].thread, NULL, worker_main, &pool[i]);
    }
}

/* Memory for the grid barrier of cooperative groups. */
static u64 fresh_workspace(struct worker *k) {
    if (!k->workspace) k->workspace = memory_allocate(64, 64, MEMORY_VARIABLE, "the grid's barrier");
    u32 fresh[16] = {64};
    memcpy((void *)(k->workspace->start + (u64)k->workspace->delta), fresh, sizeof fresh);
    return k->workspace->start;
}

static pthread_mutex_t one_launch = PTHREAD_MUTEX_INITIALIZER; /* held by the launch that makes progress; the others spin */

static void begin_launch(struct launch *l) {
    int watched = l->module->info->sanitize != 0;
    pthread_mutex_lock(&pool_lock);
    l->is_alone = launches_under_way == NULL;
    l->next_under_way = launches_under_way;
    launches_under_way = l;
    struct worker *k = spare;
    if (k) spare = k->next_spare;
    else k = calloc(1, sizeof *k);
    /* Waking other threads does not pay for small grids. */
    l->has_pool = worker_count > 1 && l->blocks > 1 && !watched && !pool_launch;
    /* Blocks of a cooperative grid wait for each other: make them all resident soon, and do not let them spin long. */
    l->fuel = l->cooperative ? 64 : FUEL;
    l->patience = l->cooperative ? 1 : POLLS_BEFORE_COMPANY;
    l->worker = k;
    if (l->cooperative) l->workspace = fresh_workspace(k);
    if (l->has_pool) {
        pool_launch = l;
        pool_running = worker_count - 1;
        pool_generation++;
        pthread_cond_broadcast(&pool_work);
    }
    pthread_mutex_unlock(&pool_lock);
    if (watched) watch_lock(), order_start_launch(l), watch_unlock();
    prepare_worker(k, l);
}

/* Whether the pool's threads are done with the launch. */
static int wait_for_pool(struct launch *l, int stay) {
    if (!l->has_pool) return 1;
    WATCH(__atomic_load_n(&pool_running, __ATOMIC_ACQUIRE) == 0);
    pthread_mutex_lock(&pool_lock);
    while (pool_running && (stay || !l->gets_nowhere)) pthread_cond_wait(&pool_done, &pool_lock);
    int done = pool_running == 0;
    if (done) pool_launch = NULL, l->has_pool = 0;
    pthread_mutex_unlock(&pool_lock);
    return done;
}

static void end_launch(struct launch *l) {
    pthread_mutex_lock(&pool_lock);
    l->worker->next_spare = spare;
    spare = l->worker;
    struct launch **at = (struct launch **)&launches_under_way;
    while (*at != l) at = &(*at)->next_under_way;
    *at = l->next_under_way;
    if (l->error) {
        if (!pending_fault) pending_fault = l->error;
        for (struct launch *other = launches_under_way; other; other = other->next_under_way) other->abort = 1; /* a fault ends the GPU's work for all launches */
    }
    pthread_mutex_unlock(&pool_lock);
}

int run_launch(struct launch *l) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int goes_on = l->worker != NULL;
    pthread_once(&once, start_workers);
    if (!goes_on) {
        pthread_mutex_lock(&one_launch);
        begin_launch(l);
    }
    struct worker *before = this_worker;
    this_worker = l->worker;
    int done = !l->worker->launch || run_blocks(l->worker, l, goes_on);
    this_worker = before;
    if (done) l->worker->launch = NULL;
    done = done && wait_for_pool(l, goes_on);
    if (!goes_on) pthread_mutex_unlock(&one_launch);
    if (done) end_launch(l);
    return done;
}

/* First come, first served, so that a thread that spins cannot lock out the host. */
static u32 watch_next, watch_served;
void watch_lock(void) {
    u32 mine = __atomic_fetch_add(&watch_next, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&watch_served, __ATOMIC_ACQUIRE) != mine) sched_yield();
}
void watch_unlock(void) { __atomic_add_fetch(&watch_served, 1, __ATOMIC_RELEASE); }
