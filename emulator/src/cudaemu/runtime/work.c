/* The order of the work that a program submits to its streams: kernels, copies, sets, host functions, events.
 *
 * Work whose predecessors are done runs immediately, on the host's thread, and is done when the call returns. So a program
 * that never waits for a kernel in an unusual way runs the same each time, at no extra cost. Only a kernel that gets
 * nowhere, because it waits for the host or for another stream (schedule.c decides when), moves to a separate thread.
 * The host continues, and work submitted after that kernel goes into its stream's queue, which the same thread runs in
 * order once the kernel has ended. Errors of a queued kernel appear at the next call that waits, as on a GPU.
 *
 * `unfinished` has all work in the order of its submission. Work waits for earlier work of its stream. Between the
 * legacy default stream and all blocking streams, work waits in both directions. cudaStreamWaitEvent makes work
 * wait for one record of an event.
 *
 * A kernel that triggers dependents is `held` until the host does something else with its streams: if that is a kernel that
 * may overlap with it, the two run together (dependents.c). */

#include "emu.h"
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct work *unfinished, **end = &unfinished;
static u64 ids;
static struct work *held;
static __thread int is_runner;
static u32 waiting;     /* threads of the program that wait for unfinished work, and cannot have seen that it changed */
static u32 waits;       /* how often one began to wait */
static u32 changes;

/* The caller holds the lock. */
static void wake_all(void) {
    changes++, waiting = 0;
    pthread_cond_broadcast(&changed);
}

int stream_waits(const struct stream *s, const struct stream *e) {
    return s == e || (s == &legacy_stream && !(e->flags & cudaStreamNonBlocking)) || (e == &legacy_stream && !(s->flags & cudaStreamNonBlocking));
}

static int depends(const struct work *w, const struct work *earlier) {
    return stream_waits(w->stream, earlier->stream) || (w->after && w->after == earlier->id);
}

static int is_ready(const struct work *w) {
    for (const struct work *e = unfinished; e && e != w; e = e->next)
        if (depends(w, e)) return 0;
    return 1;
}

static void append(struct work *w) {
    w->next = NULL;
    *end = w;
    end = &w->next;
}

static void finish(struct work *w) {
    struct work **at = &unfinished;
    while (*at != w) at = &(*at)->next;
    *at = w->next;
    if (end == &w->next) end = at;
    wake_all();
    if (w->on_heap) free(w);
}

static struct work *first_of(const struct stream *s) {
    for (struct work *w = unfinished; w; w = w->next)
        if (w->stream == s) return w;
    return NULL;
}

static void *run_stream(void *argument) {
    struct stream *s = argument;
    is_runner = 1;
    pthread_mutex_lock(&lock);
    for (struct work *w; (w = first_of(s));) {
        if (w->is_running || !is_ready(w)) { /* another thread runs it, or it must wait for other work */
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        w->is_running = 1;
        pthread_mutex_unlock(&lock);
        host_call = w->host_call;
        while (!w->run(w)) {}
        pthread_mutex_lock(&lock);
        finish(w);
    }
    s->has_runner = 0;
    pthread_mutex_unlock(&lock);
    __atomic_sub_fetch(&own_threads, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

/* The caller holds the lock. */
static void need_runner(struct stream *s) {
    pthread_t thread;
    if (s->has_runner) return;
    s->has_runner = 1;
    __atomic_add_fetch(&own_threads, 1, __ATOMIC_SEQ_CST);
    if (pthread_create(&thread, NULL, run_stream, s)) {
        fprintf(stderr, "emulator: no thread for a stream\n");
        _exit(125);
    }
    pthread_detach(thread);
}

/* Runs work on this thread until it ends, or gets nowhere and continues on another thread. The caller holds the lock. */
static int run_here(struct work *w) {
    w->is_running = 1;
    pthread_mutex_unlock(&lock);
    const int done = w->run(w);
    pthread_mutex_lock(&lock);
    if (done) {
        finish(w);
        return 1;
    }
    w->is_running = 0;
    wake_all();
    need_runner(w->stream);
    return 0;
}

/* The caller holds the lock. */
static void run_held(void) {
    struct work *w = held;
    held = NULL;
    if (!w) return;
    w->stops_at_trigger = 0;
    run_here(w);
}

/* Runs the held work until it triggers, then `second` until it waits, then the held work to its end. After that `second` is
 * held in turn if it triggers; otherwise it runs to its end. The caller holds the lock. */
static void run_overlapped(struct work *second) {
    struct work *first = held;
    held = NULL;
    first->dependent = second, second->prerequisite = first;
    first->stops_at_trigger = 1, second->stops_at_trigger = second->triggers;
    first->is_running = second->is_running = 1;
    pthread_mutex_unlock(&lock);
    int done = first->run(first);
    const int second_done = second->run(second);
    first->stops_at_trigger = 0;
    while (!done) done = first->run(first);
    pthread_mutex_lock(&lock);
    second->prerequisite = NULL;
    finish(first);
    if (second_done) finish(second);
    else if (second->triggers) held = second;
    else run_here(second);
}

u64 work_submit(struct work *w, size_t bytes) {
    w->host_call = host_call;
    pthread_mutex_lock(&lock);
    u64 id = w->id = ++ids;
    if (held && w->may_overlap && held->stream == w->stream) {
        append(w);
        run_overlapped(w);
        pthread_mutex_unlock(&lock);
        return id;
    }
    run_held();
    if (w->triggers && is_ready(w)) {
        append(w);
        held = w;
        pthread_mutex_unlock(&lock);
        return id;
    }
    if (!is_ready(w)) {
        if (!w->on_heap) {
            struct work *kept = malloc(bytes);
            memcpy(kept, w, bytes);
            kept->on_heap = 1;
            w = kept;
        }
        append(w);
        need_runner(w->stream);
        pthread_mutex_unlock(&lock);
        return id;
    }
    append(w);
    const int done = run_here(w);
    pthread_mutex_unlock(&lock);
    return done ? 0 : id;
}

static int awaited(const struct work *w, const struct stream *s, u64 id) {
    return id ? w->id == id : !s || depends(&(struct work){.stream = (struct stream *)s}, w);
}

int work_is_done(const struct stream *s, u64 id) {
    int done = 1;
    pthread_mutex_lock(&lock);
    run_held();
    for (const struct work *w = unfinished; w && done; w = w->next) done = !awaited(w, s, id);
    pthread_mutex_unlock(&lock);
    return done;
}

void work_wait(const struct stream *s, u64 id) {
    if (is_runner) return; /* called from a host function in a stream, which must not wait for streams */
    pending_settle(id ? NULL : s);
    pthread_mutex_lock(&lock);
    run_held();
    u64 last = ids;
    for (const struct work *w = unfinished; w;)
        if (w->id <= last && awaited(w, s, id)) {
            const u32 before = changes;
            waiting++, waits++;
            pthread_cond_wait(&changed, &lock);
            if (changes == before) waiting--; /* woken without a reason */
            w = unfinished;
        } else
            w = w->next;
    pthread_mutex_unlock(&lock);
}

int all_wait_for_one(u32 *times) {
    u32 threads = 0, running = 0, ready = 0;
    DIR *all = opendir("/proc/self/task");
    if (!all) return 0;
    pthread_mutex_lock(&lock);
    for (struct dirent *d; (d = readdir(all));) threads += d->d_name[0] != '.';
    for (const struct work *w = unfinished; w; w = w->next)
        if (w->is_running) running++;
        else ready += (u32)is_ready(w);
    const int all_wait = threads <= __atomic_load_n(&own_threads, __ATOMIC_SEQ_CST) + waiting && running == 1 && !ready;
    *times = waits;
    pthread_mutex_unlock(&lock);
    closedir(all);
    return all_wait;
}
