/* a * b + c, rounded once, on x86 processors without an instruction for it.
 *
 * The product of two floats is exact in double. The sum is rounded to odd, and a double rounded to odd becomes the same
 * float as the exact sum (Boldo and Melquiond, "Emulation of FMA and Correctly Rounded Sums"). */

#include "emu.h"

#if defined(__x86_64__) && W == 4
typedef double pair_of_doubles __attribute__((vector_size(16)));
typedef i64 pair_of_words __attribute__((vector_size(16)));

INLINE pair_of_doubles sum_to_odd(pair_of_doubles a, pair_of_doubles b) {
    const pair_of_doubles sum = a + b, part = sum - a, error = (a - (sum - part)) + (b - part); /* Knuth's TwoSum */
    const pair_of_words inexact = (error < 0) | (error > 0), even = ((pair_of_words)sum & 1) - 1; /* NaN is neither */
    const pair_of_words opposite = (error < 0) ^ (sum < 0), towards_exact = (opposite | 1);
    return (pair_of_doubles)((pair_of_words)sum + (towards_exact & inexact & even));
}

INLINE pair_of_doubles low(VF a) { return __builtin_ia32_cvtps2pd(a); }
INLINE pair_of_doubles high(VF a) { return __builtin_ia32_cvtps2pd(__builtin_ia32_movhlps(a, a)); }

VF rt_fma_f32(VF a, VF b, VF c) {
    const VF first = __builtin_ia32_cvtpd2ps(sum_to_odd(low(a) * low(b), low(c)));
    const VF second = __builtin_ia32_cvtpd2ps(sum_to_odd(high(a) * high(b), high(c)));
    return __builtin_ia32_movlhps(first, second);
}
#endif
