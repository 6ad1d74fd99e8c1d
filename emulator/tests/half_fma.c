/* Compares fused multiplications and additions of halves in vectors with those of one lane, which go through f64, on numbers
 * of every kind: any bits, and bits near those of 1, 0 and the largest. Prints what differs. */
#include "warp.h"

#include <stdio.h>

static u64 state = 1;
static u32 noise(void) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (u32)(state >> 33);
}
static u32 number(u32 one, u32 infinity) {
    const u32 sign = noise() % 2 << 15;
    switch (noise() % 5) {
    case 0: return noise() & 0xffff;
    case 1: return sign | noise() % 40;
    case 2: return sign | (infinity - noise() % 40);
    default: return sign | (one - 2000 + noise() % 4000);
    }
}
#define COMPARE(type, one, infinity)                                                                                   \
    for (u32 round = 0; round < 300000; round++) {                                                                     \
        VU a, b, c;                                                                                                    \
        for (u32 i = 0; i < W; i++) a[i] = number(one, infinity), b[i] = number(one, infinity), c[i] = number(one, infinity); \
        const int how = (int)(round % 3);                                                                              \
        const VF x = type##_to_f32_v(a), y = type##_to_f32_v(b), z = type##_to_f32_v(c);                               \
        const VU got = how == 0 ? fma_##type##_v(x, y, z, 0) : how == 1 ? fma_##type##_v(x, y, z, 1) : fma_##type##_v(x, y, z, 2); \
        for (u32 i = 0; i < W; i++) {                                                                                  \
            const u32 want = fma_##type##_s(x[i], y[i], z[i], how);                                                    \
            if (got[i] != want)                                                                                        \
                return printf(#type ": 0x%x * 0x%x + 0x%x, how %d: 0x%x, one lane 0x%x\n", a[i], b[i], c[i], how, got[i], want), 1; \
        }                                                                                                              \
    }

int main(void) {
    COMPARE(f16, 0x3c00, 0x7c00)
    COMPARE(bf16, 0x3f80, 0x7f80)
    return 0;
}
