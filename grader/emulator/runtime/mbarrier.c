/* mbarrier: barrier objects in shared memory (PTX ISA, "mbarrier"), under cuda::barrier and cuda::pipeline.
 *
 * An object has 64 bits that only these instructions interpret, so the emulator can choose its layout:
 *
 *   bits 0-19   arrivals that the phase still waits for      bits 40-61  phases completed; the lowest bit is the parity
 *   bits 20-39  arrivals that each phase waits for           bits 62-63  01 in an object that is initialised
 *
 * The token of an arrival is the object's value before it. Threads wait by testing repeatedly, so a warp whose test
 * fails lets the others run. A block is deadlocked if for longer than any other loop runs without rt_poll its warps do
 * nothing but test without success.
 *
 * Under --sanitize race, a completed phase orders the whole block, as a named barrier does. */

#include "emu.h"

#define FIELD ((1ull << 20) - 1)
#define PHASE_BIT 40
#define VALID_BIT 62
#define PHASES ((1ull << (VALID_BIT - PHASE_BIT)) - 1)
#define COUNT_MAXIMUM FIELD
#define VAIN_MAXIMUM (FUEL * 32u) /* a loop with __nanosleep yields FUEL times before it polls; meanwhile up to 31 warps may test */

static u64 *object_at(struct warp *w, u32 site, int space, u64 addr, u32 lane) {
    u64 *object = rt_address(w, site, space, addr, lane, 8);
    if (*object >> VALID_BIT != 1)
        rt_fault(w, site, lane, cudaErrorIllegalInstruction,
                 "this barrier object (cuda::barrier, mbarrier) was not initialised: init(&barrier, count) by one thread and __syncthreads() must come before its first use");
    return object;
}

static u32 phase_of(u64 object) { return (u32)(object >> PHASE_BIT & PHASES); }

void rt_mbarrier_init(struct warp *w, u32 site, int space, const u64 *addr, u32 m, const u64 *count) {
    for (u32 todo = m; todo; todo &= todo - 1) {
        u32 l = lowest_lane(todo);
        u64 *object = rt_address(w, site, space, addr[l], l, 8), n = (u32)count[l];
        if (!n || n > COUNT_MAXIMUM)
            rt_fault(w, site, l, cudaErrorIllegalInstruction, "a barrier object for %llu arrivals: the number must be from 1 to %llu", (unsigned long long)n, COUNT_MAXIMUM);
        *object = n | n << 20 | 1ull << VALID_BIT;
    }
}

void rt_mbarrier_invalidate(struct warp *w, u32 site, int space, const u64 *addr, u32 m) {
    for (u32 todo = m; todo; todo &= todo - 1) *object_at(w, site, space, addr[lowest_lane(todo)], lowest_lane(todo)) = 0;
}

void rt_mbarrier_arrive(struct warp *w, u32 site, int space, const u64 *addr, u32 m, u64 *vv, int drops) {
    struct block *b = w->block;
    b->asked_in_vain = 0;
    for (u32 todo = m; todo; todo &= todo - 1) {
        u32 l = lowest_lane(todo);
        u64 *object = object_at(w, site, space, addr[l], l), old = *object, pending = old & FIELD, expected = old >> 20 & FIELD, n = (u32)vv[l];
        if (n > pending)
            rt_fault(w, site, l, cudaErrorIllegalInstruction, "%llu arrivals at a barrier object that waits for only %llu more of its %llu: more threads arrive than init() was called for",
                     (unsigned long long)n, (unsigned long long)pending, (unsigned long long)expected);
        pending -= n;
        if (drops) expected -= n;
        u64 phase = phase_of(old);
        if (!pending) {
            phase++, pending = expected;
            barrier_orders(b);
        }
        *object = pending | expected << 20 | (phase & PHASES) << PHASE_BIT | 1ull << VALID_BIT;
        vv[l] = old;
    }
}

u32 rt_mbarrier_test(struct warp *w, u32 site, int space, const u64 *addr, u32 m, const u64 *vv, int parity) {
    u32 done = 0;
    u64 left = 0, expected = 0;
    for (u32 todo = m; todo; todo &= todo - 1) {
        u32 l = lowest_lane(todo), phase;
        u64 object = *object_at(w, site, space, addr[l], l);
        phase = phase_of(object);
        if (parity ? (phase & 1) != (vv[l] & 1) : phase != phase_of(vv[l])) done |= 1u << l;
        else left = object & FIELD, expected = object >> 20 & FIELD;
    }
    struct block *b = w->block;
    if (done == m) {
        b->asked_in_vain = 0;
        return done;
    }
    w->asked_in_vain = 1;
    if (++b->asked_in_vain > VAIN_MAXIMUM)
        rt_fault(w, site, lowest_lane(m & ~done), cudaErrorLaunchTimeout,
                 "deadlock: this thread waits at a barrier object (cuda::barrier, cuda::pipeline, mbarrier) for %llu more of %llu arrivals, and %s",
                 (unsigned long long)left, (unsigned long long)expected,
                 m == w->live ? "all other threads of the block wait too"
                              : "the threads that still run wait too, or are lanes of its warp outside the function it waits in, which the emulator cannot run: make it __forceinline__");
    rt_nanosleep(w, 0);
    return done;
}
