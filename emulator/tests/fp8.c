/* Compares conversions of 8-bit floats with their definition: all codes to halves, and numbers of every kind to the nearest code,
 * in vectors and in one lane. Prints what differs. */
#include "warp.h"

#include <math.h>
#include <stdio.h>

struct type { const char *name; int fraction, bias; u32 largest, infinity; };
static const struct type E4M3 = {"e4m3", 3, 7, 0x7e, 0x100}, E5M2 = {"e5m2", 2, 15, 0x7b, 0x7c};

static double value(struct type t, u32 code) {
    const int exponent = (int)(code & 0x7f) >> t.fraction, bits = code & ((1 << t.fraction) - 1);
    const double size = exponent ? ldexp((1 << t.fraction) + bits, exponent - t.bias - t.fraction) : ldexp(bits, 1 - t.bias - t.fraction);
    return code & 0x80 ? -size : size;
}
static u32 half_of(struct type t, u32 code) {
    const u32 size = code & 0x7f;
    if (size == t.infinity) return (code & 0x80) << 8 | 0x7c00;
    return size > t.largest ? 0x7fff : f64_to_f16_s(value(t, code));
}
/* The nearest number, of two as near the one with the even code. */
static u32 nearest(struct type t, float x, int how) {
    if (x != x) return 0x7f;
    const u32 sign = signbit(x) ? 0x80 : 0;
    const double size = fabs((double)x);
    u32 best = 0;
    for (u32 code = 1; code <= t.largest; code++) {
        const double further = fabs(value(t, code) - size) - fabs(value(t, best) - size);
        if (further < 0 || (further == 0 && code % 2 == 0)) best = code;
    }
    if (size > value(t, t.largest)) best = t.largest;
    return how & FP8_RELU ? sign ? 0 : best : sign | best;
}

static u64 state = 1;
static u32 noise(void) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (u32)(state >> 32);
}
/* Any bits, a number that the type may have, the middle of two, or their neighbours. */
static float number(u32 round) {
    const u32 sign = noise() & 0x80000000u;
    switch (round % 4) {
    case 0: return u2f(noise());
    case 1: return u2f(sign | (noise() % 24 << 23) + (118u << 23) | (noise() & 0x780000));
    case 2: return u2f((sign | (noise() % 48 << 23) + (104u << 23) | (noise() & 0x780000)) + noise() % 3 - 1);
    default: return u2f(sign | (noise() % 10 << 20) + 0x7f600000u | (noise() & 0xff));
    }
}

#define DIFFERS(what, got, want) ((got) != (want) && printf(what ": 0x%x instead of 0x%x\n", (u32)(got), (u32)(want)))
#define COMPARE(t, TYPE)                                                                                               \
    for (u32 pair = 0; pair < 0x10000; pair += W)                                                                      \
        for (int how = 0; how < 2; how++) {                                                                            \
            VU x;                                                                                                      \
            for (u32 i = 0; i < W; i++) x[i] = pair + i;                                                               \
            const VU got = how ? t##x2_to_f16x2_v(x, 1) : t##x2_to_f16x2_v(x, 0);                                      \
            for (u32 i = 0; i < W; i++) {                                                                              \
                u32 high = half_of(TYPE, x[i] >> 8), low = half_of(TYPE, x[i] & 0xff);                                 \
                if (how) high = high >> 15 ? 0 : high, low = low >> 15 ? 0 : low;                                      \
                if (DIFFERS(#t " to f16", got[i], high << 16 | low) || DIFFERS(#t " to f16, one lane", t##x2_to_f16x2_s(x[i], how), high << 16 | low)) return 1; \
            }                                                                                                          \
        }                                                                                                              \
    for (u32 round = 0; round < 1000; round++) {                                                                       \
        VF high, low;                                                                                                  \
        VU halves;                                                                                                     \
        for (u32 i = 0; i < W; i++) high[i] = number(round), low[i] = number(round), halves[i] = noise() & (round % 3 ? ~0u : 0xffe0ffe0u); \
        for (int how = 0; how < 2; how++) {                                                                            \
            const VU got = f32_to_##t##x2_v(high, low, how), of_halves = f16x2_to_##t##x2_v(halves, how);              \
            for (u32 i = 0; i < W; i++) {                                                                              \
                const u32 want = nearest(TYPE, high[i], how) << 8 | nearest(TYPE, low[i], how);                        \
                const u32 of = nearest(TYPE, f16_to_f32_s(halves[i] >> 16), how) << 8 | nearest(TYPE, f16_to_f32_s(halves[i] & 0xffff), how); \
                if (DIFFERS("f32 to " #t, got[i], want) || DIFFERS("f32 to " #t ", one lane", f32_to_##t##x2_s(high[i], low[i], how), want) || \
                    DIFFERS("f16 to " #t, of_halves[i], of) || DIFFERS("f16 to " #t ", one lane", f16x2_to_##t##x2_s(halves[i], how), of)) \
                    return 1;                                                                                          \
            }                                                                                                          \
        }                                                                                                              \
    }

int main(void) {
    COMPARE(e4m3, E4M3)
    COMPARE(e5m2, E5M2)
    return 0;
}
