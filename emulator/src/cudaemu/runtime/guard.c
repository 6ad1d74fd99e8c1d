/* Host memory that the program must not touch: blocks that it has freed, and pinned memory that an asynchronous copy may
 * still be reading or writing. On a GPU such an access usually passes by luck. Here it would never give a wrong result,
 * because the copy is done when its call returns. So the pages are protected: the first access is reported with its line
 * and then allowed. Calls that read or write files are checked here, because the system would only return EFAULT.
 *
 * Freed blocks below 16 KiB are not watched, nor are the incomplete pages at both ends of a range. */

#define _GNU_SOURCE
#include "emu.h"
#include <execinfo.h>
#include <malloc.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE 4096ull
#define GUARDS 256
#define MOST_FREED (1ull << 30) /* bytes of freed blocks that are kept from reuse, at most */
#define FRAMES 24
#define FRAMES_KEPT 6

struct guard {
    u64 start, end, first, last; /* the bytes, and the protected pages within */
    const struct stream *stream; /* of the copy; NULL: a freed block */
    int readable;                /* the copy only reads the memory */
    const char *function;
    const void *calls[FRAMES_KEPT]; /* the call stack of free(), or the call that copies */
    int call_count;
};
static struct guard guards[GUARDS];
static u32 count;
static u64 freed_bytes;
static int is_on;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int busy;

void guard_start(void) {
    void *first[1];
    backtrace(first, 1); /* the first call loads a library, which a signal handler must not do */
    is_on = trace_enabled();
}

static void protect(const struct guard *g, int access) {
    if (g->last > g->first) mprotect((void *)g->first, g->last - g->first, access);
}

static struct guard *at(u64 start, u64 end) {
    for (u32 i = 0; i < count; i++)
        if (guards[i].start < end && start < guards[i].end) return &guards[i];
    return NULL;
}

/* The caller holds the lock. */
static void lift(struct guard *g) {
    protect(g, PROT_READ | PROT_WRITE);
    *g = guards[--count];
}

static void add(const struct guard *g) {
    pthread_mutex_lock(&lock);
    if (count < GUARDS) {
        guards[count++] = *g;
        protect(g, g->readable ? PROT_READ : PROT_NONE);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- copies ---------------------------------------------------------------------------------------------------------- */

void guard_copy(const char *function, const struct stream *s, u64 start, u64 bytes, int readable) {
    struct allocation *a = is_on ? memory_find(start) : NULL;
    if (!a || a->kind != MEMORY_PINNED) return;
    u64 end = start + bytes, last = end == a->start + a->size ? (end + PAGE - 1) & ~(PAGE - 1) : end & ~(PAGE - 1);
    add(&(struct guard){start, end, (start + PAGE - 1) & ~(PAGE - 1), last, s, readable, function, {host_call}, 1});
}

void guard_lift(u64 start, u64 bytes) {
    pthread_mutex_lock(&lock);
    for (struct guard *g; (g = at(start, start + bytes));) lift(g);
    pthread_mutex_unlock(&lock);
}

void guard_settle(const struct stream *s) {
    if (!count) return;
    pthread_mutex_lock(&lock);
    for (u32 i = count; i-- > 0;)
        if (guards[i].stream && (!s || stream_waits(s, guards[i].stream))) lift(&guards[i]);
    pthread_mutex_unlock(&lock);
}

/* ---- accesses -------------------------------------------------------------------------------------------------------- */

static void report(const struct guard *g, u64 address, int writes) {
    void *frames[FRAMES];
    int depth = backtrace(frames, FRAMES);
    u64 here = 0, other = 0;
    for (int i = 0; i < depth; i++) here = here * 31 + (u64)frames[i];
    for (int i = 0; i < g->call_count; i++) other = other * 31 + (u64)g->calls[i];
    if (!first_time((const void *)other, (u32)(here >> 32), (u32)here)) return;
    char places[800], *there = places + 400;
    place_facts("host", (const void *const *)frames, depth, places, 400);
    place_facts("other", g->calls, g->call_count, there, 400);
    host_call = NULL;
    const char *does = writes < 0 ? "use" : writes ? "write" : "read";
    if (!g->stream) {
        finding(NULL, ~0u, 0, "memory", "host_use_after_free", "does:%s\n%s\n%s", does, places, there);
        return;
    }
    char place[400];
    struct allocation *a = memory_find(address);
    allocation_facts(a, place, sizeof place);
    finding(NULL, ~0u, 0, "race", "copy_not_awaited", "does:%s\nfunction:%s\nhow:%s\n%s\n%s\n%s", does, g->function, g->readable ? "reading" : "writing", places, there, place);
}

/* Whether the fault at this address was an access to guarded memory; if so, it is reported, and the access may continue. */
int guard_fault(u64 address) {
    pthread_mutex_lock(&lock);
    struct guard *found = at(address, address + 1), g;
    if (!found) { /* not guarded, or another thread has just lifted the guard */
        pthread_mutex_unlock(&lock);
        return 0;
    }
    g = *found;
    lift(found);
    pthread_mutex_unlock(&lock);
    if (!this_worker) report(&g, address, -1); /* kernels may use pinned memory: order among streams is not known here */
    return 1;
}

/* Checks bytes that the program passes to a function that reads or writes files. */
static void check(u64 p, u64 bytes, int writes) {
    if (!count || busy || !bytes) return;
    busy = 1;
    pthread_mutex_lock(&lock);
    struct guard *found = at(p, p + bytes), g;
    int is_bad = found && (writes || !found->readable);
    if (is_bad) {
        g = *found;
        lift(found);
    }
    pthread_mutex_unlock(&lock);
    if (is_bad) report(&g, p > g.start ? p : g.start, writes);
    busy = 0;
}

size_t fwrite(const void *p, size_t size, size_t n, FILE *f) {
    check((u64)p, size * n, 0);
    flockfile(f);
    size_t done = fwrite_unlocked(p, size, n, f);
    funlockfile(f);
    return done;
}
size_t fread(void *p, size_t size, size_t n, FILE *f) {
    check((u64)p, size * n, 1);
    flockfile(f);
    size_t done = fread_unlocked(p, size, n, f);
    funlockfile(f);
    return done;
}
ssize_t write(int f, const void *p, size_t n) {
    check((u64)p, n, 0);
    return syscall(SYS_write, f, p, n);
}
ssize_t read(int f, void *p, size_t n) {
    check((u64)p, n, 1);
    return syscall(SYS_read, f, p, n);
}
ssize_t writev(int f, const struct iovec *parts, int n) {
    for (int i = 0; i < n; i++) check((u64)parts[i].iov_base, parts[i].iov_len, 0);
    return syscall(SYS_writev, f, parts, n);
}

/* ---- freed blocks ------------------------------------------------------------------------------------------------------ */

extern void __libc_free(void *);
void free(void *p) {
    u64 bytes = p && is_on && !busy && !this_worker ? malloc_usable_size(p) : 0;
    if (bytes < 4 * PAGE || freed_bytes + bytes > MOST_FREED || count > GUARDS / 2) {
        __libc_free(p);
        return;
    }
    busy = 1;
    void *frames[FRAMES];
    struct guard g = {.start = (u64)p, .end = (u64)p + bytes};
    g.first = (g.start + PAGE - 1) & ~(PAGE - 1), g.last = g.end & ~(PAGE - 1);
    int found = backtrace(frames, FRAMES);
    for (int i = 1; i < found && g.call_count < FRAMES_KEPT; i++) g.calls[g.call_count++] = frames[i];
    freed_bytes += bytes;
    madvise((void *)g.first, g.last - g.first, MADV_DONTNEED);
    add(&g);
    busy = 0;
}
