/* The order of the work that a program submits to its streams: kernels, copies, sets, host functions, events.
 *
 * Work whose predecessors are done runs at once, on the host's thread, and is done when the call returns. So a program
 * that never waits for a kernel in an unusual way runs the same each time, at no extra cost. Only a kernel that gets
 * nowhere, because it waits for the host or for another stream (schedule.c decides when), moves to a separate thread.
 * The host goes on, and work submitted after that kernel goes into its stream's queue, which the same thread runs in
 * order once the kernel has ended. Errors of a queued kernel appear at the next call that waits, as on a GPU.
 *
 * `unfinished` has all work in the order of its submission. Work waits for earlier work of its stream. Between the
 * legacy default stream and all blocking streams, work waits in both directions. cudaStreamWaitEvent makes work
 * wait for one record of an event. */

#include "emu.h"
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct work *unfinished, **end = &unfinished;
static u64 ids;
static __thread int is_runner;

static int depends(const struct work *w, const struct work *earlier) {
    const struct stream *s = w->stream, *e = earlier->stream;
    return s == e || (s == &legacy_stream && !(e->flags & cudaStreamNonBlocking)) || (e == &legacy_stream && !(s->flags & cudaStreamNonBlocking)) ||
           (w->after && w->after == earlier->id);
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
    pthread_cond_broadcast(&changed);
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
        if (w->is_running || !is_ready(w)) { /* running on the thread that submitted it */
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
    return NULL;
}

/* The caller holds the lock. */
static void need_runner(struct stream *s) {
    pthread_t thread;
    if (s->has_runner) return;
    s->has_runner = 1;
    if (pthread_create(&thread, NULL, run_stream, s)) {
        fprintf(stderr, "emulator: no thread for a stream\n");
        _exit(125);
    }
    pthread_detach(thread);
}

u64 work_submit(struct work *w, size_t bytes) {
    w->host_call = host_call;
    pthread_mutex_lock(&lock);
    u64 id = w->id = ++ids;
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
    w->is_running = 1;
    pthread_mutex_unlock(&lock);
    int done = w->run(w);
    pthread_mutex_lock(&lock);
    if (done) finish(w);
    else {
        w->is_running = 0;
        pthread_cond_broadcast(&changed);
        need_runner(w->stream);
    }
    pthread_mutex_unlock(&lock);
    return done ? 0 : id;
}

static int awaited(const struct work *w, const struct stream *s, u64 id) {
    return id ? w->id == id : !s || depends(&(struct work){.stream = (struct stream *)s}, w);
}

int work_is_done(const struct stream *s, u64 id) {
    int done = 1;
    pthread_mutex_lock(&lock);
    for (const struct work *w = unfinished; w && done; w = w->next) done = !awaited(w, s, id);
    pthread_mutex_unlock(&lock);
    return done;
}

void work_wait(const struct stream *s, u64 id) {
    if (is_runner) return; /* called from a host function in a stream, which must not wait for streams */
    pthread_mutex_lock(&lock);
    u64 last = ids;
    for (const struct work *w = unfinished; w;)
        if (w->id <= last && awaited(w, s, id)) {
            pthread_cond_wait(&changed, &lock);
            w = unfinished;
        } else
            w = w->next;
    pthread_mutex_unlock(&lock);
}
