/* Vector accesses that never tear: blocks on other threads see all of an access or none of it.
 *
 * A volatile or relaxed access of two or four registers is one transaction for a lane of a GPU; decoupled look-back
 * (CUB's scans) passes a value and its state that way. An access of 8 bytes is atomic on all supported processors. An
 * access of 16 aligned bytes is atomic on x86 with AVX (Intel SDM, volume 3, 9.1.1; AMD's manual, volume 2, 7.3.2) and on Arm
 * with LSE2 (Arm ARM, B2.2.1); elsewhere these accesses share a lock. Programs built with sanitizers run on one
 * worker and do not use this file. */

#include "emu.h"
#if defined(__aarch64__)
#include <sys/auxv.h>
#define LSE2 (1ul << 25) /* HWCAP_USCAT */
#endif

typedef u64 pair __attribute__((vector_size(16), may_alias));

static int sixteen_at_once(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx");
#elif defined(__aarch64__)
    return (getauxval(AT_HWCAP) & LSE2) != 0;
#else
    return 0;
#endif
}

static pair move_sixteen(pair *at, const pair *value) {
    pair result = {0};
#if defined(__x86_64__)
    if (value) __asm__ volatile("movdqa %1, %0" : "=m"(*at) : "x"(*value) : "memory");
    else __asm__ volatile("movdqa %1, %0" : "=x"(result) : "m"(*at) : "memory");
#elif defined(__aarch64__)
    if (value) __asm__ volatile("str %q1, %0" : "=Q"(*at) : "w"(*value) : "memory");
    else __asm__ volatile("ldr %q0, %1" : "=w"(result) : "Q"(*at) : "memory");
#else
    if (value) *at = *value;
    else result = *at;
#endif
    return result;
}

static pair sixteen(pair *at, const pair *value) {
    static int lock;
    if (LIKELY(sixteen_at_once())) return move_sixteen(at, value);
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) {}
    pair result = move_sixteen(at, value);
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    return result;
}

/* Each element is a row of 32 lanes, 32 bits wide, or 64 for 8-byte elements. */
#define ELEMENT(rows, c) ((u8 *)(rows) + (32 * (c) + l) * (bytes == 8 ? 8 : 4))

void rt_load_whole(struct warp *w, u32 site, int space, const u64 *addr, u32 m, u32 bytes, u32 count, void *out) {
    for (; m; m &= m - 1) {
        u32 l = lowest_lane(m);
        if (space == SPACE_GENERIC && !is_global(addr[l])) {
            rt_load_q(w, site, space, addr, 1u << l, bytes, count, out);
            continue;
        }
        void *at = rt_address(w, site, space, addr[l], l, bytes * count);
        union { pair whole; u8 b[16]; u64 half; } x = {{0}};
        if (bytes * count == 16) x.whole = sixteen(at, NULL);
        else x.half = __atomic_load_n((u64 *)at, __ATOMIC_RELAXED);
        for (u32 c = 0; c < count; c++) {
            memset(ELEMENT(out, c), 0, bytes == 8 ? 8 : 4);
            memcpy(ELEMENT(out, c), x.b + c * bytes, bytes);
        }
    }
}

void rt_store_whole(struct warp *w, u32 site, int space, const u64 *addr, u32 m, u32 bytes, u32 count, const void *in) {
    for (; m; m &= m - 1) {
        u32 l = lowest_lane(m);
        if (space == SPACE_GENERIC && !is_global(addr[l])) {
            rt_store_q(w, site, space, addr, 1u << l, bytes, count, in);
            continue;
        }
        void *at = rt_address(w, site, space, addr[l], l, bytes * count);
        union { pair whole; u8 b[16]; u64 half; } x = {{0}};
        for (u32 c = 0; c < count; c++) memcpy(x.b + c * bytes, ELEMENT(in, c), bytes);
        if (bytes * count == 16) sixteen(at, &x.whole);
        else __atomic_store_n((u64 *)at, x.half, __ATOMIC_RELAXED);
    }
}
