// Vector accesses that blocks never see half done, though they write and read the same place all the time.
#include "conformance.h"

// Each writes values whose parts belong together, and reads what the others wrote. `broken` counts parts that do not.
#define HAMMER(name, TYPE, PARTS, LOAD, STORE)                                                    \
    __global__ void name(TYPE *place, unsigned *broken, int rounds) {                             \
        TYPE *p = place + PARTS * threadIdx.x; /* the same in all blocks */                          \
        TYPE x[4] = {}, seed = (TYPE)(blockIdx.x * 1000 + threadIdx.x + 1);                       \
        unsigned bad = 0;                                                                         \
        for (int k = 0; k < rounds; k++) {                                                        \
            TYPE v = seed * (TYPE)0x9E3779B97F4A7C15ull + (TYPE)k;                                \
            STORE;                                                                                \
            LOAD;                                                                                 \
            for (int i = 1; i < PARTS; i++) bad += x[i] != (TYPE)(x[0] * (TYPE)(i + 1));          \
        }                                                                                         \
        if (bad) atomicAdd(broken, bad);                                                          \
    }
template <int PARTS, class T> static bool whole(void (*kernel)(T *, unsigned *, int)) {
    Array<T> place(2 * PARTS);
    Array<unsigned> broken(1);
    kernel<<<16, 2>>>(place.device, broken.device, 30000);
    return finished() && equal(broken.down(), [](size_t) { return 0u; });
}
#define LOAD2(how, C) asm volatile("ld." how " {%0, %1}, [%2];" : "=" C(x[0]), "=" C(x[1]) : "l"(p) : "memory")
#define LOAD4(how) asm volatile("ld." how " {%0, %1, %2, %3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "l"(p) : "memory")
#define STORE2(how, C) asm volatile("st." how " [%2], {%0, %1};" ::C(v), C(v * 2), "l"(p) : "memory")
#define STORE4(how) asm volatile("st." how " [%4], {%0, %1, %2, %3};" ::"r"(v), "r"(v * 2), "r"(v * 3), "r"(v * 4), "l"(p) : "memory")
#define FENCED(store) if (k == 0) __threadfence(); store // volatile accesses without any fence are reported as a race
typedef unsigned long long u64;
HAMMER(relaxed_pairs_of_32_bits, unsigned, 2, LOAD2("relaxed.gpu.global.v2.u32", "r"), STORE2("relaxed.gpu.global.v2.u32", "r"))
TEST(relaxed_pairs_of_32_bits_are_never_seen_half_done) { return whole<2>(relaxed_pairs_of_32_bits); }
HAMMER(relaxed_pairs_of_64_bits, u64, 2, LOAD2("relaxed.gpu.v2.u64", "l"), STORE2("relaxed.gpu.v2.u64", "l"))
TEST(relaxed_pairs_of_64_bits_are_never_seen_half_done) { return whole<2>(relaxed_pairs_of_64_bits); }
HAMMER(relaxed_quads, unsigned, 4, LOAD4("relaxed.gpu.v4.u32"), STORE4("relaxed.gpu.v4.u32"))
TEST(relaxed_quads_are_never_seen_half_done) { return whole<4>(relaxed_quads); }
HAMMER(volatile_pairs_of_64_bits, u64, 2, LOAD2("volatile.global.v2.u64", "l"), FENCED(STORE2("volatile.global.v2.u64", "l")))
TEST(volatile_pairs_of_64_bits_are_never_seen_half_done) { return whole<2>(volatile_pairs_of_64_bits); }
HAMMER(volatile_quads, unsigned, 4, LOAD4("volatile.v4.u32"), FENCED(STORE4("volatile.v4.u32")))
TEST(volatile_quads_are_never_seen_half_done) { return whole<4>(volatile_quads); }
HAMMER(acquired_pairs, u64, 2, LOAD2("acquire.gpu.global.v2.u64", "l"), STORE2("release.gpu.global.v2.u64", "l"))
TEST(acquired_pairs_are_never_seen_half_done) { return whole<2>(acquired_pairs); }
HAMMER(words_of_128_bits, u64, 2,
       asm volatile("{ .reg .b128 t; ld.relaxed.gpu.b128 t, [%2]; mov.b128 {%0, %1}, t; }" : "=l"(x[0]), "=l"(x[1]) : "l"(p) : "memory"),
       asm volatile("{ .reg .b128 t; mov.b128 t, {%0, %1}; st.relaxed.gpu.b128 [%2], t; }" ::"l"(v), "l"(v * 2), "l"(p) : "memory"))
TEST(words_of_128_bits_are_never_seen_half_done) { return whole<2>(words_of_128_bits); }

// Lanes of a divided warp, and small elements.
__global__ void divided(unsigned short *p, unsigned *out, const int *in) {
    int i = threadIdx.x;
    unsigned a = 0, b = 0, c = 0, d = 0;
    unsigned short x = (unsigned short)(i + 1), s = 0, t = 0, u = 0, v = 0;
    if (in[i] % 3) {
        for (int k = 0; k < in[i] % 3; k++) asm volatile("st.volatile.v4.u16 [%0], {%1, %1, %2, %1};" ::"l"(p + 4 * i), "h"(x), "h"((unsigned short)k) : "memory");
        asm volatile("ld.volatile.v4.u16 {%0, %1, %2, %3}, [%4];" : "=h"(s), "=h"(t), "=h"(u), "=h"(v) : "l"(p + 4 * i) : "memory");
        a = s, b = t, c = u, d = v;
    }
    out[i] = a + 100 * b + 10000 * c + 1000000 * d;
}
TEST(volatile_vectors_of_16_bits_in_a_divided_warp) {
    Array<int> in(64, [](size_t i) { return (int)(noise(i) % 100); }, 0);
    Array<unsigned short> p(256);
    Array<unsigned> out(64);
    divided<<<1, 64>>>(p.device, out.device, in.device);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t i) { unsigned k = (unsigned)in.host[i] % 3, x = (unsigned)i + 1; return k ? x + 100 * x + 10000 * (k - 1) + 1000000 * x : 0u; });
}
