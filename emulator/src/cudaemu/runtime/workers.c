/* Worker threads, and the launches that they run.
 *
 * A launch runs on the thread that submits it, as worker 0, with the help of the pool. When all resident blocks of a
 * worker spin and no other can be started, they may be waiting for the host or for another stream's kernel. Then the
 * submitting thread leaves, and work.c lets another thread continue with worker 0's blocks. The pool's threads stay with
 * such a launch to its end; meanwhile other launches run without them. */

#define _GNU_SOURCE
#include "schedule.h"
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

u32 worker_count;
static struct worker *pool, *spare;
static struct launch *pool_launch;
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_work = PTHREAD_COND_INITIALIZER, pool_done = PTHREAD_COND_INITIALIZER;
static u64 pool_generation;
static u32 pool_running;

void say_nowhere(struct launch *l) {
    pthread_mutex_lock(&pool_lock);
    l->gets_nowhere = 1;
    pthread_cond_signal(&pool_done);
    pthread_mutex_unlock(&pool_lock);
}

/* Waking a thread can take longer than a launch's last block, or than the time until the next launch in a program with
 * many. So threads poll for this long before they sleep. */
#define WATCH_NS 50000
#define WATCH(condition)                                                                                               \
    for (u64 until = now_ns() + WATCH_NS; !(condition) && now_ns() < until;) {}

int workers_proved(const struct launch *l, u32 epoch) {
    for (u32 i = 1; l->has_pool && i < worker_count; i++)
        if (pool[i].launch == l && __atomic_load_n(&pool[i].proved, __ATOMIC_SEQ_CST) != epoch) return 0;
    return !l->worker->launch || __atomic_load_n(&l->worker->proved, __ATOMIC_SEQ_CST) == epoch;
}

static void *worker_main(void *argument) {
    struct worker *k = argument;
    this_worker = k;
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV), sigdelset(&all, SIGBUS), sigdelset(&all, SIGFPE), sigdelset(&all, SIGILL), sigdelset(&all, SIGTRAP);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    u8 *stack = map_pages(65536);
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
        k->launch = NULL;
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
        if (!pthread_create(&pool[i].thread, NULL, worker_main, &pool[i])) __atomic_add_fetch(&own_threads, 1, __ATOMIC_SEQ_CST);
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
    int watched = l->module->info->watched != 0;
    counters_begin(l);
    pthread_mutex_lock(&pool_lock);
    l->is_alone = launches_under_way == NULL;
    l->next_under_way = launches_under_way;
    launches_under_way = l;
    struct worker *k = spare;
    if (k) spare = k->next_spare;
    else k = calloc(1, sizeof *k);
    /* Waking other threads does not pay for small grids. */
    const int overlaps = l->work.stops_at_trigger || l->work.prerequisite;
    l->has_pool = worker_count > 1 && l->blocks > 1 && l->sampled > 1 && !watched && !pool_launch && !overlaps;
    /* Blocks of a cooperative grid wait for each other: make them all resident soon, and do not let them spin long. */
    l->fuel = l->cooperative ? 64 : FUEL;
    l->patience = l->cooperative || overlaps ? 1 : POLLS_BEFORE_COMPANY;
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
    int resumed = l->worker != NULL;
    pthread_once(&once, start_workers);
    if (!resumed) {
        pthread_mutex_lock(&one_launch);
        begin_launch(l);
    }
    struct worker *before = this_worker;
    this_worker = l->worker;
    int done = !l->worker->launch || run_blocks(l->worker, l, resumed);
    this_worker = before;
    if (done) l->worker->launch = NULL;
    done = done && wait_for_pool(l, resumed);
    if (!resumed) pthread_mutex_unlock(&one_launch);
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
