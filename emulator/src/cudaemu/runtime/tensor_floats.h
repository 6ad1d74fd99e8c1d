/* Numbers of matrix instructions in vectors: from a type's bits to f32, with an exponent (struct side of tensor.h). */
#ifndef TENSOR_FLOATS_H
#define TENSOR_FLOATS_H

#include "tensor.h"

#include <math.h>

INLINE VU where(VI mask, VU a, VU b) { return ((VU)mask & a) | (~(VU)mask & b); }
INLINE VI largest(VI a, VI b) {
#ifdef EMU_AVX512
    return __builtin_ia32_pmaxsd512_mask(a, b, a, (u16)-1);
#elif W == 8
    return __builtin_ia32_pmaxsd256(a, b);
#else
    return (VI)where(a > b, (VU)a, (VU)b);
#endif
}
INLINE VF power(VI exponent) { return (VF)((VU)(exponent + 127) << 23); }

/* How a type's numbers become f32: their bits without the sign are shifted into f32's fraction and exponent, and `up` is added
 * to the exponent. `least` is the type's least exponent; numbers from `special` on are its infinity, if it has one, and NaN. */
struct format { i32 up, least; float special; int has_infinity; };
static const struct format HALF = {112, -14, 65536, 1}, SINGLE = {0, -126, INFINITY, 1}, BYTE = {120, -6, 480, 0};
#define F16_PARTS(h) ((h) & 0x8000u) << 16, ((h) & 0x7fffu) << 13, HALF
#define F32_PARTS(u) (u) & 0x80000000u, (u) & 0x7fffffffu, SINGLE
#define E4M3_PARTS(b) ((b) & 0x80u) << 24, ((b) & 0x7fu) << 20, BYTE

/* Two ways to add to the exponent. On some processors a multiplication is 100 times slower for subnormal numbers, so only
 * accumulators use it. A subtraction is a little slower for all numbers. */
enum { BY_MULTIPLYING, BY_SUBTRACTING };
INLINE VF widen(VU magnitude, const struct format f, int how) {
    if (!f.up) return (VF)magnitude;
    if (how == BY_MULTIPLYING) return (VF)magnitude * power(BI(f.up));
    const VU subnormal = (VU)((VI)magnitude < (1 << 23));
    return (VF)(magnitude + ((u32)f.up << 23) + (subnormal & 1u << 23)) - (VF)(subnormal & (u32)(127 + f.least) << 23);
}
INLINE void split(VU sign, VU magnitude, const struct format f, int how, VF *value, VI *exponent) {
    const VF v = widen(magnitude, f, how);
    const VI e = largest((VI)((VU)v >> 23) - 127, BI(f.least));
    *exponent = (VI)where((VI)(magnitude == BU(0)), BU((u32)EXPONENT_ZERO), (VU)e);
    *value = (VF)((VU)v | sign);
}
INLINE VI mark_special(VF value, VI exponent, const struct format f) {
    const VI magnitude = (VI)((VU)value & 0x7fffffffu), special = magnitude >= (i32)f2u(f.special);
    const VI infinite = f.has_infinity ? magnitude == (i32)f2u(f.special) : BI(0);
    return (VI)where(special, where(infinite, BU(EXPONENT_INFINITE), BU(EXPONENT_NAN)), (VU)exponent);
}
INLINE VI is_unusual(VF value, VI exponent, const struct format f) {
    if (f.least > -LARGEST_ORDINARY) return (VI)((VU)value & 0x7fffffffu) >= (i32)f2u(f.special);
    return (VI)((VU)(exponent + LARGEST_ORDINARY) > BU(2 * LARGEST_ORDINARY)) & (exponent != EXPONENT_ZERO);
}

/* The significand of a number: at least 1, except for subnormal numbers; not 0 for infinities and NaN. */
INLINE VF significand_of(VF number, VI exponent) {
    const VU bits = (VU)number, normal = (bits & 0x807fffffu) | 0x3f800000u;
    const VI small = ((VI)(bits >> 23 & 255u) - 127 < exponent) & (exponent < EXPONENT_SPECIAL);
    const VF up = power((VI)where(small, (VU)-exponent, BU(0)));
    return (VF)where((VI)(bits << 1 == BU(0)), bits, where(small, (VU)(number * up), normal));
}

#endif
