/* Vectors of W 32-bit lanes, or W/2 64-bit lanes, for each instruction set: types, masks, selection, comparison. */
#ifndef VECTORS_H
#define VECTORS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define INLINE static inline __attribute__((always_inline, unused))
#define COLD __attribute__((cold, noinline))

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define EMU_AVX512 1
#define W 16
#elif defined(__AVX2__)
#define W 8
#else
#define W 4
#endif
#define PIECES (32 / W)

typedef u32 VU __attribute__((vector_size(W * 4)));
typedef i32 VI __attribute__((vector_size(W * 4)));
typedef float VF __attribute__((vector_size(W * 4)));
typedef u64 VQ __attribute__((vector_size(W * 4)));
typedef i64 VL __attribute__((vector_size(W * 4)));
typedef double VD __attribute__((vector_size(W * 4)));
typedef VU VUu __attribute__((aligned(1), may_alias));
typedef VF VFu __attribute__((aligned(1), may_alias));
typedef VQ VQu __attribute__((aligned(1), may_alias));
typedef u32 u32a __attribute__((may_alias, aligned(1)));
typedef u64 u64a __attribute__((may_alias, aligned(1)));
typedef u16 u16a __attribute__((may_alias, aligned(1)));
typedef u32 W32 __attribute__((vector_size(16), may_alias, aligned(1)));

#if W == 16
#define IOTA_(o) 0 + o, 1 + o, 2 + o, 3 + o, 4 + o, 5 + o, 6 + o, 7 + o, 8 + o, 9 + o, 10 + o, 11 + o, 12 + o, 13 + o, 14 + o, 15 + o
#define IOTAQ_(o) 0 + o, 1 + o, 2 + o, 3 + o, 4 + o, 5 + o, 6 + o, 7 + o
#define REP(x) x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x
#define REPQ(x) x, x, x, x, x, x, x, x
#elif W == 8
#define IOTA_(o) 0 + o, 1 + o, 2 + o, 3 + o, 4 + o, 5 + o, 6 + o, 7 + o
#define IOTAQ_(o) 0 + o, 1 + o, 2 + o, 3 + o
#define REP(x) x, x, x, x, x, x, x, x
#define REPQ(x) x, x, x, x
#else
#define IOTA_(o) 0 + o, 1 + o, 2 + o, 3 + o
#define IOTAQ_(o) 0 + o, 1 + o
#define REP(x) x, x, x, x
#define REPQ(x) x, x
#endif
#define IOTA(i) ((VU){IOTA_(W * (i))})
#define IOTAQ(i) ((VQ){IOTAQ_(W / 2 * (i))})

INLINE VU BU(u32 x) { return (VU){REP(x)}; }
INLINE VI BI(i32 x) { return (VI){REP(x)}; }
INLINE VF BF(float x) { return (VF){REP(x)}; }
INLINE VQ BQ(u64 x) { return (VQ){REPQ(x)}; }
INLINE VL BL(i64 x) { return (VL){REPQ(x)}; }
INLINE VD BD(double x) { return (VD){REPQ(x)}; }

INLINE u32 f2u(float x) { u32 r; memcpy(&r, &x, 4); return r; }
INLINE float u2f(u32 x) { float r; memcpy(&r, &x, 4); return r; }
INLINE u64 d2q(double x) { u64 r; memcpy(&r, &x, 8); return r; }
INLINE double q2d(u64 x) { double r; memcpy(&r, &x, 8); return r; }

/* Lane masks of a piece: MK of a 32-bit row, MKQ of a 64-bit row. */
#if W == 16
#define MK(m, i) ((u16)((m) >> (16 * (i))))
#define MKQ(m, i) ((u8)((m) >> (8 * (i))))
#else
#define MK(m, i) (((m) >> (W * (i))) & ((1u << W) - 1))
#define MKQ(m, i) (((m) >> (W / 2 * (i))) & ((1u << (W / 2)) - 1))
#endif

#ifdef EMU_AVX512
INLINE VU SELU(u16 m, VU a, VU b) { return (VU)__builtin_ia32_blendmd_512_mask((VI)b, (VI)a, m); }
INLINE VF SELF(u16 m, VF a, VF b) { return __builtin_ia32_blendmps_512_mask(b, a, m); }
typedef long long VLL __attribute__((vector_size(64)));
INLINE VQ SELQ(u8 m, VQ a, VQ b) { return (VQ)__builtin_ia32_blendmq_512_mask((VLL)b, (VLL)a, m); }
INLINE VD SELD(u8 m, VD a, VD b) { return __builtin_ia32_blendmpd_512_mask(b, a, m); }
/* A comparison's mask as a number. The move is written in assembly because gcc 12.2 spills masks wrongly: it stores a
 * 16-bit mask with kmovw, two bytes, and reads four back, so that lanes of the upper half get unrelated bits from the
 * stack (seen in reference/matmul/tiled.cu, whose comparison is hoisted out of the loop). */
INLINE u32 mask16(u16 m) { u32 n; __asm__("kmovw %1, %0" : "=r"(n) : "k"(m)); return n; }
INLINE u32 mask8(u8 m) { u32 n; __asm__("kmovb %1, %0" : "=r"(n) : "k"(m)); return n; }
/* Comparison predicates of the hardware: 0 eq, 1 lt, 2 le, 4 ne, 5 ge, 6 gt. */
#define CMPU(op, a, b) mask16(__builtin_ia32_ucmpd512_mask((VI)(a), (VI)(b), op, -1))
#define CMPI(op, a, b) mask16(__builtin_ia32_cmpd512_mask((VI)(a), (VI)(b), op, -1))
#define CMPQ(op, a, b) mask8(__builtin_ia32_ucmpq512_mask((VLL)(a), (VLL)(b), op, -1))
#define CMPL(op, a, b) mask8(__builtin_ia32_cmpq512_mask((VLL)(a), (VLL)(b), op, -1))
/* Float predicates: 0 eq_oq, 17 lt_oq, 18 le_oq, 4 neq_uq, 12 neq_oq, 29 ge_oq, 30 gt_oq, 3 unord, 7 ord,
 * 8 eq_uq, 9 nge(ltu), 10 ngt(leu), 5 nlt(geu), 6 nle(gtu). */
#define CMPF(op, a, b) mask16(__builtin_ia32_cmpps512_mask(a, b, op, -1, 4))
#define CMPD(op, a, b) mask8(__builtin_ia32_cmppd512_mask(a, b, op, -1, 4))
/* PICK(WHERE(...), a, b) is SEL(CMP(...), a, b) for a comparison used immediately, whose result can stay a vector. */
#define WHEREU CMPU
#define WHEREI CMPI
#define WHEREQ CMPQ
#define WHEREL CMPL
#define WHEREF CMPF
#define WHERED CMPD
#define PICKU SELU
#define PICKF SELF
#define PICKQ SELQ
#define PICKD SELD
#else
INLINE VU PICKU(VU k, VU a, VU b) { return (a & k) | (b & ~k); }
INLINE VF PICKF(VU k, VF a, VF b) { return (VF)PICKU(k, (VU)a, (VU)b); }
INLINE VQ PICKQ(VU k, VQ a, VQ b) { return (VQ)PICKU(k, (VU)a, (VU)b); }
INLINE VD PICKD(VU k, VD a, VD b) { return (VD)PICKU(k, (VU)a, (VU)b); }
INLINE VU expand_mask(u32 m) { VU bit = BU(1) << IOTA(0); return (VU)((BU(m) & bit) != 0); }
INLINE VU expand_maskq(u32 m) { VQ bit = BQ(1) << IOTAQ(0); return (VU)((BQ(m) & bit) != 0); }
INLINE VU SELU(u32 m, VU a, VU b) { return PICKU(expand_mask(m), a, b); }
INLINE VF SELF(u32 m, VF a, VF b) { return PICKF(expand_mask(m), a, b); }
INLINE VQ SELQ(u32 m, VQ a, VQ b) { return PICKQ(expand_maskq(m), a, b); }
INLINE VD SELD(u32 m, VD a, VD b) { return PICKD(expand_maskq(m), a, b); }
INLINE u32 movemask(VI v) {
#if W == 8
    return (u32)__builtin_ia32_movmskps256((float __attribute__((vector_size(32))))v);
#elif defined(__SSE2__)
    return (u32)__builtin_ia32_movmskps((float __attribute__((vector_size(16))))v);
#else
    u32 r = 0;
    for (int i = 0; i < W; i++) r |= (u32)(v[i] & 1) << i;
    return r;
#endif
}
INLINE u32 movemaskq(VL v) {
#if W == 8
    return (u32)__builtin_ia32_movmskpd256((double __attribute__((vector_size(32))))v);
#elif defined(__SSE2__)
    return (u32)__builtin_ia32_movmskpd((double __attribute__((vector_size(16))))v);
#else
    return (u32)(v[0] & 1) | (u32)(v[1] & 1) << 1;
#endif
}
#define COMPARE(op, a, b) \
    ((op) == 0 ? (a) == (b) : (op) == 1 ? (a) < (b) : (op) == 2 ? (a) <= (b) : (op) == 4 ? (a) != (b) : (op) == 5 ? (a) >= (b) : (a) > (b))
#define COMPAREF(op, a, b)                                                                                              \
    ((op) == 0    ? (a) == (b)                                                                                          \
     : (op) == 17 ? (a) < (b)                                                                                           \
     : (op) == 18 ? (a) <= (b)                                                                                          \
     : (op) == 4  ? (a) != (b)                                                                                          \
     : (op) == 12 ? ((a) < (b)) | ((a) > (b))                                                                           \
     : (op) == 29 ? (a) >= (b)                                                                                          \
     : (op) == 30 ? (a) > (b)                                                                                           \
     : (op) == 3  ? ((a) != (a)) | ((b) != (b))                                                                         \
     : (op) == 7  ? ((a) == (a)) & ((b) == (b))                                                                         \
     : (op) == 8  ? ~(((a) < (b)) | ((a) > (b)))                                                                        \
     : (op) == 9  ? ~((a) >= (b))                                                                                       \
     : (op) == 10 ? ~((a) > (b))                                                                                        \
     : (op) == 5  ? ~((a) < (b))                                                                                        \
                  : ~((a) <= (b)))
#define WHEREU(op, a, b) (VU)(COMPARE(op, (VU)(a), (VU)(b)))
#define WHEREI(op, a, b) (VU)(COMPARE(op, (VI)(a), (VI)(b)))
#define WHEREQ(op, a, b) (VU)(COMPARE(op, (VQ)(a), (VQ)(b)))
#define WHEREL(op, a, b) (VU)(COMPARE(op, (VL)(a), (VL)(b)))
#define WHEREF(op, a, b) (VU)(COMPAREF(op, (VF)(a), (VF)(b)))
#define WHERED(op, a, b) (VU)(COMPAREF(op, (VD)(a), (VD)(b)))
#define CMPU(op, a, b) movemask((VI)WHEREU(op, a, b))
#define CMPI(op, a, b) movemask((VI)WHEREI(op, a, b))
#define CMPQ(op, a, b) movemaskq((VL)WHEREQ(op, a, b))
#define CMPL(op, a, b) movemaskq((VL)WHEREL(op, a, b))
#define CMPF(op, a, b) movemask((VI)WHEREF(op, a, b))
#define CMPD(op, a, b) movemaskq((VL)WHERED(op, a, b))
#endif

#endif
