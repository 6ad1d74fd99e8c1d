/* mbarrier: barrier objects in shared memory (PTX ISA, "mbarrier"), under cuda::barrier and cuda::pipeline, and for the bytes
 * of bulk copies.
 *
 * An object has 64 bits that only these instructions interpret, so the emulator can choose its layout:
 *
 *   bits 0-19   arrivals that the phase still waits for      bits 40-60  bytes that the phase still waits for; signed, because
 *   bits 20-39  arrivals that each phase waits for                       copies may complete before expect_tx counts them
 *   bit 61      parity of the phase                          bits 62-63  01 in an object that is initialised
 *
 * A phase is complete when it waits for neither. The token of an arrival is the object's value before it; a token is valid in
 * its phase and the next one, so one bit tells them apart. Threads wait by testing repeatedly, so a warp whose test fails lets
 * the others run, and bulk copies arrive meanwhile (bulk.c). A block is deadlocked if for longer than any other loop runs
 * without rt_poll its warps do nothing but test without success.
 *
 * Under --sanitize race, a completed phase orders the whole block, as a named barrier does. */

#include "counters.h"
#include "async.h"

#define FIELD ((1ull << 20) - 1)
#define VALID_BIT 62
#define COUNT_MAXIMUM FIELD
#define BYTES_MAXIMUM ((i64)FIELD)
#define VAIN_MAXIMUM (FUEL * 32u) /* a loop with __nanosleep yields FUEL times before it polls; meanwhile up to 31 warps may test */

struct state { u64 pending, expected; i64 bytes; u32 parity; };

static struct state unpack(u64 object) {
    return (struct state){object & FIELD, object >> 20 & FIELD, (i64)(object << 3) >> 43, object >> 61 & 1};
}
static u64 pack(struct state s) {
    return s.pending | s.expected << 20 | ((u64)s.bytes & ((1ull << 21) - 1)) << 40 | (u64)s.parity << 61 | 1ull << VALID_BIT;
}
static int is_valid(u64 object) { return object >> VALID_BIT == 1; }

/* Stores a changed object, in its next phase if it waits for nothing more. */
static void settle(struct block *b, u64 *object, struct state s) {
    makes_progress(b);
    for (u32 i = 0; b->cluster && i < b->cluster->size; i++) makes_progress(b->cluster->blocks[i]);
    if (!s.pending && !s.bytes) {
        s.parity ^= 1, s.pending = s.expected;
        barrier_orders(b);
    }
    *object = pack(s);
}

static u64 *object_at(struct warp *w, u32 site, int space, u64 addr, u32 lane) {
    u64 *object = rt_address(w, site, space, addr, lane, 8);
    if (!is_valid(*object))
        rt_fault(w, site, lane, cudaErrorIllegalInstruction,
                 "this barrier object (cuda::barrier, mbarrier) was not initialised: init(&barrier, count) by one thread and __syncthreads() must come before its first use");
    return object;
}

void rt_mbarrier_init(struct warp *w, u32 site, int space, const u64 *addr, u32 m, const u64 *count) {
    for (u32 todo = m; todo; todo &= todo - 1) {
        u32 l = lowest_lane(todo);
        u64 *object = rt_address(w, site, space, addr[l], l, 8), n = (u32)count[l];
        if (!n || n > COUNT_MAXIMUM)
            rt_fault(w, site, l, cudaErrorIllegalInstruction, "a barrier object for %llu arrivals: the number must be from 1 to %llu", (unsigned long long)n, COUNT_MAXIMUM);
        *object = pack((struct state){.pending = n, .expected = n});
    }
}

void rt_mbarrier_invalidate(struct warp *w, u32 site, int space, const u64 *addr, u32 m) {
    for (u32 todo = m; todo; todo &= todo - 1) *object_at(w, site, space, addr[lowest_lane(todo)], lowest_lane(todo)) = 0;
}

void rt_mbarrier_arrive(struct warp *w, u32 site, int space, const u64 *addr, u32 m, u64 *vv, int drops) {
    struct block *b = w->block;
    for (u32 todo = m; todo; todo &= todo - 1) {
        u32 l = lowest_lane(todo);
        u64 *object = object_at(w, site, space, addr[l], l), old = *object, n = (u32)vv[l];
        struct state s = unpack(old);
        if (n > s.pending)
            rt_fault(w, site, l, cudaErrorIllegalInstruction, "%llu arrivals at a barrier object that waits for only %llu more of its %llu: more threads arrive than init() was called for",
                     (unsigned long long)n, (unsigned long long)s.pending, (unsigned long long)s.expected);
        s.pending -= n;
        if (drops) s.expected -= n;
        settle(b, object, s);
        vv[l] = old;
    }
}

/* The object waits for `bytes` more, or fewer if negative. */
static void add_bytes(struct warp *w, u32 site, u32 lane, u64 *object, i64 bytes) {
    struct state s = unpack(*object);
    s.bytes += bytes;
    if (s.bytes > BYTES_MAXIMUM || s.bytes < -BYTES_MAXIMUM)
        rt_fault(w, site, lane, cudaErrorIllegalInstruction, "a phase of a barrier object would wait for %lld bytes: the limit is %lld", (long long)s.bytes, (long long)BYTES_MAXIMUM);
    settle(w->block, object, s);
}

void rt_mbarrier_expect(struct warp *w, u32 site, int space, const u64 *addr, u32 m, const u64 *bytes, int completes) {
    for (u32 todo = m; todo; todo &= todo - 1) {
        u32 l = lowest_lane(todo);
        i64 n = (i64)(u32)bytes[l];
        add_bytes(w, site, l, object_at(w, site, space, addr[l], l), completes ? -n : n);
    }
}

void mbarrier_complete(struct warp *w, u32 site, u32 lane, u64 *object, u32 bytes) {
    if (is_valid(*object)) add_bytes(w, site, lane, object, -(i64)bytes);
    else
        diagnose(w, site, lane, "error", "sync", "Wait for the copy before the barrier object's memory is used for something else.",
                 "the bulk copy issued here completes at a barrier object that is not initialised, or no longer");
}

/* What is wrong with the bytes of a phase that never becomes complete. */
static const char *bytes_left(i64 bytes, char *text, size_t size) {
    snprintf(text, size, bytes > 0 ? " and %lld more bytes than its copies bring (expect_tx)" : " and its copies bring %lld bytes more than expect_tx counted",
             (long long)(bytes > 0 ? bytes : -bytes));
    return bytes ? text : "";
}

u32 rt_mbarrier_test(struct warp *w, u32 site, int space, const u64 *addr, u32 m, const u64 *vv, int parity) {
    u32 done = 0;
    struct state left = {0};
    for (u32 todo = m; todo; todo &= todo - 1) {
        u32 l = lowest_lane(todo);
        u64 *object = object_at(w, site, space, addr[l], l);
        const u32 of_phase = parity ? (u32)vv[l] & 1 : unpack(vv[l]).parity;
        if (unpack(*object).parity == of_phase) bulk_progress(w->block, object);
        struct state s = unpack(*object);
        if (s.parity != of_phase) done |= 1u << l;
        else left = s;
    }
    count_async(w, ASYNC_WAITS, done == m);
    struct block *b = w->block;
    if (done == m) {
        b->asked_in_vain = 0;
        return done;
    }
    char text[120];
    w->asked_in_vain = 1;
    if (++b->asked_in_vain > VAIN_MAXIMUM)
        rt_fault(w, site, lowest_lane(m & ~done), cudaErrorLaunchTimeout,
                 "deadlock: this thread waits at a barrier object (cuda::barrier, cuda::pipeline, mbarrier) for %llu more of %llu arrivals%s, and %s",
                 (unsigned long long)left.pending, (unsigned long long)left.expected, bytes_left(left.bytes, text, sizeof text),
                 m == w->live ? "all other threads of the block wait too"
                              : "the threads that still run wait too, or are lanes of its warp outside the function it waits in, which the emulator cannot run: make it __forceinline__");
    rt_nanosleep(w, 0);
    return done;
}
