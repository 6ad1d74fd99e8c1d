/* atom and red, lane by lane in lane order. They use the host's atomics, because other worker threads run other blocks at
 * the same time. */

#include "emu.h"

static u16 half_add(u16 a, u16 b) { return (u16)f32_to_f16_s(f16_to_f32_s(a) + f16_to_f32_s(b)); }
static u16 bhalf_add(u16 a, u16 b) { return (u16)f32_to_bf16_s(bf16_to_f32_s(a) + bf16_to_f32_s(b)); }

#define LANES_DO(BYTES, BODY)                                                                                          \
    for (u32 l = 0; l < 32; l++)                                                                                       \
        if (m >> l & 1) {                                                                                              \
            void *p = atomic_address(w, site, space, addr[l], l, BYTES);                                               \
            BODY                                                                                                       \
        }
#define BUILTIN(how, type, T, f)                                                                                       \
    void rt_atomic_##how##_##type(struct warp *w, u32 site, int space, const u64 *addr, u32 m, u64 *vv) {              \
        LANES_DO(sizeof(T), vv[l] = f((T *)p, (T)vv[l], __ATOMIC_SEQ_CST);)                                            \
    }
/* Atomics by compare and swap: `next` is computed from `old` and the operand `x`. */
#define LOOP(how, type, T, next)                                                                                       \
    void rt_atomic_##how##_##type(struct warp *w, u32 site, int space, const u64 *addr, u32 m, u64 *vv) {              \
        LANES_DO(sizeof(T), T old = __atomic_load_n((T *)p, __ATOMIC_SEQ_CST); const T x = (T)vv[l]; (void)x;          \
                 while (!__atomic_compare_exchange_n((T *)p, &old, (T)(next), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)); \
                 vv[l] = old;)                                                                                         \
    }

BUILTIN(add, u32, u32, __atomic_fetch_add)
BUILTIN(add, s32, u32, __atomic_fetch_add)
BUILTIN(add, u64, u64, __atomic_fetch_add)
BUILTIN(add, s64, u64, __atomic_fetch_add)
BUILTIN(and, b32, u32, __atomic_fetch_and)
BUILTIN(or, b32, u32, __atomic_fetch_or)
BUILTIN(xor, b32, u32, __atomic_fetch_xor)
BUILTIN(and, b64, u64, __atomic_fetch_and)
BUILTIN(or, b64, u64, __atomic_fetch_or)
BUILTIN(xor, b64, u64, __atomic_fetch_xor)
BUILTIN(exch, b32, u32, __atomic_exchange_n)
BUILTIN(exch, b64, u64, __atomic_exchange_n)
LOOP(add, f32, u32, f2u(u2f(old) + u2f(x)))
LOOP(add, f64, u64, d2q(q2d(old) + q2d(x)))
LOOP(add, f16, u16, half_add(old, x))
LOOP(add, bf16, u16, bhalf_add(old, x))
LOOP(add, f16x2, u32, (u32)half_add((u16)old, (u16)x) | (u32)half_add((u16)(old >> 16), (u16)(x >> 16)) << 16)
LOOP(add, bf16x2, u32, (u32)bhalf_add((u16)old, (u16)x) | (u32)bhalf_add((u16)(old >> 16), (u16)(x >> 16)) << 16)
LOOP(min, u32, u32, old < x ? old : x)
LOOP(max, u32, u32, old > x ? old : x)
LOOP(min, s32, u32, (i32)old < (i32)x ? old : x)
LOOP(max, s32, u32, (i32)old > (i32)x ? old : x)
LOOP(min, u64, u64, old < x ? old : x)
LOOP(max, u64, u64, old > x ? old : x)
LOOP(min, s64, u64, (i64)old < (i64)x ? old : x)
LOOP(max, s64, u64, (i64)old > (i64)x ? old : x)
LOOP(inc, u32, u32, old >= x ? 0 : old + 1)
LOOP(dec, u32, u32, old == 0 || old > x ? x : old - 1)

#define CAS(type, T)                                                                                                   \
    void rt_atomic_cas_##type(struct warp *w, u32 site, int space, const u64 *addr, u32 m, u64 *vv) {                  \
        LANES_DO(sizeof(T), T expected = (T)vv[l];                                                                     \
                 __atomic_compare_exchange_n((T *)p, &expected, (T)vv[32 + l], 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
                 vv[l] = expected;)                                                                                    \
    }
CAS(b16, u16)
CAS(b32, u32)
CAS(b64, u64)
