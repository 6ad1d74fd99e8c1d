/* Single operations in a directed rounding mode. mode: 1 down, 2 up, 3 towards zero. */

#include "emu.h"
#include <fenv.h>

static int fe(int mode) { return mode == 1 ? FE_DOWNWARD : mode == 2 ? FE_UPWARD : mode == 3 ? FE_TOWARDZERO : FE_TONEAREST; }
#define UNDER(T, expr)                                                                                                 \
    int before = fegetround();                                                                                         \
    fesetround(fe(mode));                                                                                              \
    volatile T r = expr;                                                                                               \
    fesetround(before);                                                                                                \
    return r;
#define OPERATIONS(T, F, S)                                                                                            \
    volatile T x = a, y = b, z = c;                                                                                    \
    UNDER(T, op == OP_ADD ? x + y : op == OP_SUB ? x - y : op == OP_MUL ? x * y : op == OP_DIV ? x / y : op == OP_FMA ? F(x, y, z) : S(x))
float rt_rounded_f32(int op, int mode, float a, float b, float c) { OPERATIONS(float, __builtin_fmaf, __builtin_sqrtf) }
double rt_rounded_f64(int op, int mode, double a, double b, double c) { OPERATIONS(double, __builtin_fma, __builtin_sqrt) }
float rt_rounded_f32_f64(int mode, double a) { volatile double x = a; UNDER(float, (float)x) }
float rt_rounded_f32_i64(int mode, i64 a, int is_unsigned) { volatile i64 x = a; UNDER(float, is_unsigned ? (float)(u64)x : (float)x) }
double rt_rounded_f64_i64(int mode, i64 a, int is_unsigned) { volatile i64 x = a; UNDER(double, is_unsigned ? (double)(u64)x : (double)x) }
