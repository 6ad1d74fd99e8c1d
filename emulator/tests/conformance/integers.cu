// Integer arithmetic, shifts, bit operations, comparisons, in all widths.
#include "conformance.h"

// Applies a function to pairs of noise, with edge cases mixed in, on device and host.
template <class T> __host__ __device__ T edge(uint64_t x, unsigned k) {
    T lowest = (T)((T)1 << (sizeof(T) * 8 - 1));
    switch (k % 11) {
    case 0: return (T)0;
    case 1: return (T)-1;
    case 2: return lowest;
    case 3: return (T)(lowest - 1);
    case 4: return (T)1;
    default: return (T)x;
    }
}
template <class T, class R, class F> __global__ void binary(const T *a, const T *b, R *out, int n, F f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = f(a[i], b[i]);
}
template <class T, class R, class F> bool check_binary(F f) {
    const int n = 1000;
    Array<T> a(n, [](size_t i) { return edge<T>(noise64(i), noise(i + 5000)); }, 0);
    Array<T> b(n, [](size_t i) { return edge<T>(noise64(i + n), noise(i + 9000)); }, 0);
    Array<R> out(n);
    binary<T, R><<<5, 224>>>(a.device, b.device, out.device, n, f);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t i) { return f(a.host[i], b.host[i]); });
}
#define LAMBDA(T, R, ...) [] __host__ __device__(T a, T b) -> R { (void)a; (void)b; return (R)(__VA_ARGS__); }

TEST(add_subtract_multiply_32) {
    return check_binary<uint32_t, uint32_t>(LAMBDA(uint32_t, uint32_t, a + b)) && check_binary<uint32_t, uint32_t>(LAMBDA(uint32_t, uint32_t, a - b)) &&
           check_binary<uint32_t, uint32_t>(LAMBDA(uint32_t, uint32_t, a * b)) && check_binary<uint32_t, uint32_t>(LAMBDA(uint32_t, uint32_t, a * b + 7u * a));
}
TEST(add_subtract_multiply_64) {
    return check_binary<uint64_t, uint64_t>(LAMBDA(uint64_t, uint64_t, a + b * 3)) && check_binary<uint64_t, uint64_t>(LAMBDA(uint64_t, uint64_t, a - b)) &&
           check_binary<uint64_t, uint64_t>(LAMBDA(uint64_t, uint64_t, a * b));
}
TEST(arithmetic_8_and_16) {
    return check_binary<uint8_t, uint8_t>(LAMBDA(uint8_t, uint8_t, a * b + (a >> 3))) && check_binary<int8_t, int8_t>(LAMBDA(int8_t, int8_t, a * b - (a >> 2))) &&
           check_binary<int16_t, int16_t>(LAMBDA(int16_t, int16_t, a * b + (b >> 5))) && check_binary<uint16_t, uint16_t>(LAMBDA(uint16_t, uint16_t, a * b ^ (a >> 7))) &&
           check_binary<int16_t, int32_t>(LAMBDA(int16_t, int32_t, (int)a * (int)b)) && check_binary<int8_t, int64_t>(LAMBDA(int8_t, int64_t, (int64_t)a * 3 + b));
}
TEST(divide_32) {
    return check_binary<uint32_t, uint32_t>(LAMBDA(uint32_t, uint32_t, b ? a / b : 0)) && check_binary<uint32_t, uint32_t>(LAMBDA(uint32_t, uint32_t, b ? a % b : 0)) &&
           check_binary<int32_t, int32_t>(LAMBDA(int32_t, int32_t, b && b != -1 ? a / b : 0)) && check_binary<int32_t, int32_t>(LAMBDA(int32_t, int32_t, b && b != -1 ? a % b : 0)) &&
           check_binary<int32_t, int32_t>(LAMBDA(int32_t, int32_t, a / 7 + a % 10));
}
TEST(divide_64) {
    return check_binary<uint64_t, uint64_t>(LAMBDA(uint64_t, uint64_t, b ? a / b : 0)) && check_binary<uint64_t, uint64_t>(LAMBDA(uint64_t, uint64_t, (b >> 40) ? a % (b >> 40) : 0)) &&
           check_binary<int64_t, int64_t>(LAMBDA(int64_t, int64_t, b && b != -1 ? a / b : 0)) && check_binary<int64_t, int64_t>(LAMBDA(int64_t, int64_t, b && b != -1 ? a % b : 0)) &&
           check_binary<int64_t, int64_t>(LAMBDA(int64_t, int64_t, a / 1000003));
}
TEST(compare_32) {
    return check_binary<int32_t, int32_t>(LAMBDA(int32_t, int32_t, (a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * (a > b) + 32 * (a >= b))) &&
           check_binary<uint32_t, int32_t>(LAMBDA(uint32_t, int32_t, (a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * (a > b) + 32 * (a >= b)));
}
TEST(compare_64_and_16) {
    return check_binary<int64_t, int32_t>(LAMBDA(int64_t, int32_t, (a < b) + 2 * (a <= b) + 4 * (a == b) + 16 * (a > b))) &&
           check_binary<uint64_t, int32_t>(LAMBDA(uint64_t, int32_t, (a < b) + 2 * (a <= b) + 4 * (a == b) + 16 * (a > b))) &&
           check_binary<int16_t, int32_t>(LAMBDA(int16_t, int32_t, (a < b) + 2 * (a <= b))) && check_binary<uint16_t, int32_t>(LAMBDA(uint16_t, int32_t, (a < b) + 2 * (a <= b)));
}
TEST(minimum_maximum_absolute) {
    return check_binary<int32_t, int32_t>(LAMBDA(int32_t, int32_t, (a < b ? a : b) ^ (a > b ? a : b) * 3)) && check_binary<uint32_t, uint32_t>(LAMBDA(uint32_t, uint32_t, a < b ? a : b)) &&
           check_binary<int64_t, int64_t>(LAMBDA(int64_t, int64_t, a < b ? a : b)) && check_binary<uint64_t, uint64_t>(LAMBDA(uint64_t, uint64_t, a > b ? a : b)) &&
           check_binary<int32_t, uint32_t>(LAMBDA(int32_t, uint32_t, a < 0 ? 0u - (uint32_t)a : (uint32_t)a)) && check_binary<int64_t, uint64_t>(LAMBDA(int64_t, uint64_t, a < 0 ? 0ull - (uint64_t)a : (uint64_t)a));
}
TEST(logic) {
    return check_binary<uint32_t, uint32_t>(LAMBDA(uint32_t, uint32_t, (a & b) ^ (~a | b >> 1))) && check_binary<uint64_t, uint64_t>(LAMBDA(uint64_t, uint64_t, (a & ~b) | (a ^ b << 3))) &&
           check_binary<uint32_t, uint32_t>(LAMBDA(uint32_t, uint32_t, (a & b) | (b & 0xff00ff00u) | (a & 0x00ff00ffu)));
}
TEST(shifts_by_variable) {
    return check_binary<uint32_t, uint32_t>(LAMBDA(uint32_t, uint32_t, a << (b & 31))) && check_binary<uint32_t, uint32_t>(LAMBDA(uint32_t, uint32_t, a >> (b & 31))) &&
           check_binary<int32_t, int32_t>(LAMBDA(int32_t, int32_t, a >> (b & 31))) && check_binary<uint64_t, uint64_t>(LAMBDA(uint64_t, uint64_t, a << (b & 63))) &&
           check_binary<int64_t, int64_t>(LAMBDA(int64_t, int64_t, a >> (b & 63))) && check_binary<uint64_t, uint64_t>(LAMBDA(uint64_t, uint64_t, a >> (b & 63)));
}
TEST(high_products) {
    const int n = 512;
    Array<uint32_t> out(n);
    auto run = [](Array<uint32_t> &o) {
        (void)o;
        return true;
    };
    (void)run;
    return check_binary<uint32_t, uint32_t>([] __host__ __device__(uint32_t a, uint32_t b) -> uint32_t {
#ifdef __CUDA_ARCH__
               return __umulhi(a, b);
#else
               return (uint32_t)((uint64_t)a * b >> 32);
#endif
           }) &&
           check_binary<int32_t, int32_t>([] __host__ __device__(int32_t a, int32_t b) -> int32_t {
#ifdef __CUDA_ARCH__
               return __mulhi(a, b);
#else
               return (int32_t)((int64_t)a * b >> 32);
#endif
           }) &&
           check_binary<uint64_t, uint64_t>([] __host__ __device__(uint64_t a, uint64_t b) -> uint64_t {
#ifdef __CUDA_ARCH__
               return __umul64hi(a, b);
#else
               return (uint64_t)((unsigned __int128)a * b >> 64);
#endif
           });
}

#define ON_DEVICE(dev, host_expression) \
    [] __host__ __device__(uint32_t a, uint32_t b) -> uint32_t { (void)b; return NV(dev, host_expression); }
#ifdef __CUDA_ARCH__
#define NV(d, h) (uint32_t)(d)
#else
#define NV(d, h) (uint32_t)(h)
#endif
static __host__ __device__ uint32_t reversed(uint32_t a) {
    uint32_t r = 0;
    for (int i = 0; i < 32; i++) r |= (a >> i & 1) << (31 - i);
    return r;
}
static __host__ __device__ uint32_t permuted(uint32_t a, uint32_t b, uint32_t s) {
    uint64_t x = (uint64_t)b << 32 | a;
    uint32_t r = 0;
    for (int i = 0; i < 4; i++) r |= (uint32_t)(x >> (8 * (s >> 4 * i & 7)) & 255) << 8 * i;
    return r;
}
TEST(bit_counts) {
    return check_binary<uint32_t, uint32_t>(ON_DEVICE(__popc(a), __builtin_popcount(a))) && check_binary<uint32_t, uint32_t>(ON_DEVICE(__clz(a), a ? __builtin_clz(a) : 32)) &&
           check_binary<uint32_t, uint32_t>(ON_DEVICE(__ffs(a), __builtin_ffs((int)a))) && check_binary<uint32_t, uint32_t>(ON_DEVICE(__brev(a), reversed(a))) &&
           check_binary<uint32_t, uint32_t>(ON_DEVICE(__popcll((uint64_t)a << 32 | b), __builtin_popcountll((uint64_t)a << 32 | b))) &&
           check_binary<uint32_t, uint32_t>(ON_DEVICE(__clzll((uint64_t)a << 16 | b), ((uint64_t)a << 16 | b) ? __builtin_clzll((uint64_t)a << 16 | b) : 64)) &&
           check_binary<uint32_t, uint32_t>(ON_DEVICE(__ffsll((long long)((uint64_t)a << 32)), __builtin_ffsll((long long)((uint64_t)a << 32)))) &&
           check_binary<uint32_t, uint32_t>(ON_DEVICE((uint32_t)(__brevll(a) >> 32), reversed(a)));
}
TEST(byte_permute) {
    return check_binary<uint32_t, uint32_t>(ON_DEVICE(__byte_perm(a, b, 0x5140), permuted(a, b, 0x5140))) && check_binary<uint32_t, uint32_t>(ON_DEVICE(__byte_perm(a, b, b & 0x7777), permuted(a, b, b & 0x7777)));
}
TEST(funnel_shifts) {
    return check_binary<uint32_t, uint32_t>(ON_DEVICE(__funnelshift_l(a, b, a & 63), (uint32_t)(((uint64_t)b << 32 | a) << (a & 31) >> 32))) &&
           check_binary<uint32_t, uint32_t>(ON_DEVICE(__funnelshift_r(a, b, b & 63), (uint32_t)(((uint64_t)b << 32 | a) >> (b & 31)))) &&
           check_binary<uint32_t, uint32_t>(ON_DEVICE(__funnelshift_lc(a, b, a & 63), ((a & 63) >= 32 ? a : (uint32_t)(((uint64_t)b << 32 | a) << (a & 63) >> 32)))) &&
           check_binary<uint32_t, uint32_t>(ON_DEVICE(__funnelshift_rc(a, b, b & 63), ((b & 63) >= 32 ? b : (uint32_t)(((uint64_t)b << 32 | a) >> (b & 63))))) &&
           check_binary<uint32_t, uint32_t>(ON_DEVICE((a << 7 | a >> 25), (a << 7 | a >> 25)));
}
TEST(bit_fields) {
    return check_binary<uint32_t, uint32_t>(LAMBDA(uint32_t, uint32_t, (a >> 5 & 0x7f) | (b & 0xfff) << 8)) && check_binary<int32_t, int32_t>(LAMBDA(int32_t, int32_t, (a << 9) >> 20));
}
__global__ void bfe_bfi(const uint32_t *a, uint32_t *u, int32_t *s, uint32_t *in, uint64_t *wide, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint32_t pos = a[i] & 63, len = a[i] >> 8 & 63;
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(u[i]) : "r"(a[i]), "r"(pos), "r"(len));
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(s[i]) : "r"(a[i]), "r"(pos), "r"(len));
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(in[i]) : "r"(a[i]), "r"(~a[i] * 3u), "r"(pos), "r"(len));
    asm("bfe.u64 %0, %1, %2, %3;" : "=l"(wide[i]) : "l"((uint64_t)a[i] * 0x123456789ull), "r"(pos), "r"(len));
}
TEST(bit_field_instructions) {
    const int n = 700;
    Array<uint32_t> a(n, [](size_t i) { return noise(i); }, 0), u(n), in(n);
    Array<int32_t> s(n);
    Array<uint64_t> wide(n);
    bfe_bfi<<<3, 256>>>(a.device, u.device, s.device, in.device, wide.device, n);
    if (!finished()) return false;
    auto pos = [&](size_t i) { return a.host[i] & 63; };
    auto len = [&](size_t i) { return a.host[i] >> 8 & 63; };
    return equal(u.down(), [&](size_t i) {
               uint32_t r = 0;
               for (uint32_t k = 0; k < len(i) && k < 32; k++)
                   if (pos(i) + k < 32) r |= (a.host[i] >> (pos(i) + k) & 1) << k;
               return r;
           }) &&
           equal(s.down(), [&](size_t i) {
               uint32_t r = 0, sign = 0;
               if (len(i)) sign = a.host[i] >> (pos(i) + len(i) - 1 > 31 ? 31 : pos(i) + len(i) - 1) & 1;
               for (uint32_t k = 0; k < 32; k++) r |= (k < len(i) && pos(i) + k < 32 ? a.host[i] >> (pos(i) + k) & 1 : sign) << k;
               return (int32_t)r;
           }) &&
           equal(in.down(), [&](size_t i) {
               uint32_t r = ~a.host[i] * 3u;
               for (uint32_t k = 0; k < len(i); k++)
                   if (pos(i) + k < 32) r = (r & ~(1u << (pos(i) + k))) | ((k < 32 ? a.host[i] >> k & 1 : 0) << (pos(i) + k));
               return r;
           }) &&
           equal(wide.down(), [&](size_t i) {
               uint64_t x = (uint64_t)a.host[i] * 0x123456789ull, r = 0;
               for (uint32_t k = 0; k < len(i); k++)
                   if (pos(i) + k < 64) r |= (x >> (pos(i) + k) & 1) << k;
               return r;
           });
}
// Counts above 255, which PTX leaves open: 8 bits of them count for 32-bit values, all for 64-bit ones.
__global__ void large_counts(const uint32_t *pos, const uint32_t *len, uint64_t *u, int64_t *s, uint64_t *in, uint32_t *narrow, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint64_t x = 0x8123456789abcdefull ^ (uint64_t)(i & 1) << 63;
    asm("bfe.u64 %0, %1, %2, %3;" : "=l"(u[i]) : "l"(x), "r"(pos[i]), "r"(len[i]));
    asm("bfe.s64 %0, %1, %2, %3;" : "=l"(s[i]) : "l"(x), "r"(pos[i]), "r"(len[i]));
    asm("bfi.b64 %0, %1, %2, %3, %4;" : "=l"(in[i]) : "l"(x), "l"(~x), "r"(pos[i]), "r"(len[i]));
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(narrow[i]) : "r"((uint32_t)x), "r"(pos[i]), "r"(len[i]));
}
TEST(bit_fields_with_large_counts) {
    static const uint32_t counts[] = {0, 1, 31, 32, 33, 63, 64, 65, 255, 256, 257, 300, 65536, 65537, 0x80000000u, 0xffffff00u, 0xffffffffu};
    const int k = sizeof counts / sizeof *counts, n = 2 * k * k;
    Array<uint32_t> pos(n, [](size_t i) { return counts[i / 2 % k]; }, 0), len(n, [](size_t i) { return counts[i / 2 / k]; }, 0), narrow(n);
    Array<uint64_t> u(n), in(n);
    Array<int64_t> s(n);
    large_counts<<<(n + 63) / 64, 64>>>(pos.device, len.device, u.device, s.device, in.device, narrow.device, n);
    if (!finished()) return false;
    auto x = [](size_t i) { return 0x8123456789abcdefull ^ (uint64_t)(i & 1) << 63; };
    auto mask = [&](size_t i) { return len.host[i] > 63 ? ~0ull : (1ull << len.host[i]) - 1; };
    return equal(u.down(), [&](size_t i) { return pos.host[i] > 63 ? 0 : x(i) >> pos.host[i] & mask(i); }) &&
           equal(s.down(), [&](size_t i) {
               int64_t from = (int64_t)x(i) >> (pos.host[i] > 63 ? 63 : pos.host[i]);
               int unused = len.host[i] > 63 ? 0 : 64 - len.host[i];
               return unused == 64 ? 0 : (int64_t)((uint64_t)from << unused) >> unused;
           }) &&
           equal(in.down(), [&](size_t i) {
               uint64_t where = pos.host[i] > 63 ? 0 : mask(i) << pos.host[i];
               return pos.host[i] > 63 ? ~x(i) : (~x(i) & ~where) | (x(i) << pos.host[i] & where);
           }) &&
           equal(narrow.down(), [&](size_t i) {
               uint32_t p = pos.host[i] & 255, l = len.host[i] & 255;
               return p > 31 ? 0u : (uint32_t)x(i) >> p & (l > 31 ? ~0u : (1u << l) - 1);
           });
}
TEST(packed_dot_products) {
    return check_binary<uint32_t, uint32_t>([] __host__ __device__(uint32_t a, uint32_t b) -> uint32_t {
#ifdef __CUDA_ARCH__
        return (uint32_t)__dp4a((int)a, (int)b, 5) + __dp4a(a, b, 9u);
#else
        int s = 5;
        uint32_t u = 9;
        for (int i = 0; i < 4; i++) s += (int8_t)(a >> 8 * i) * (int8_t)(b >> 8 * i), u += (uint8_t)(a >> 8 * i) * (uint8_t)(b >> 8 * i);
        return (uint32_t)s + u;
#endif
    });
}
TEST(saturating_and_three_operand) {
    return check_binary<int32_t, int32_t>([] __host__ __device__(int32_t a, int32_t b) -> int32_t {
#ifdef __CUDA_ARCH__
               int r, t;
               asm("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
               asm("sub.sat.s32 %0, %1, %2;" : "=r"(t) : "r"(a), "r"(b));
               return r ^ t;
#else
               int64_t s = (int64_t)a + b, d = (int64_t)a - b;
               auto clamp = [](int64_t x) { return (int32_t)(x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : x); };
               return clamp(s) ^ clamp(d);
#endif
           }) &&
           check_binary<uint32_t, uint32_t>(ON_DEVICE(__usad(a, b, 77u), (a > b ? a - b : b - a) + 77u)) && check_binary<uint32_t, uint32_t>(ON_DEVICE((uint32_t)__mul24((int)a, (int)b), (uint32_t)(((int)(a << 8) >> 8) * (int64_t)((int)(b << 8) >> 8)))) &&
           check_binary<uint32_t, uint32_t>(ON_DEVICE(__uhadd(a, b), (uint32_t)(((uint64_t)a + b) >> 1)));
}
TEST(wide_products) {
    return check_binary<int32_t, int64_t>(LAMBDA(int32_t, int64_t, (int64_t)a * b + a)) && check_binary<uint32_t, uint64_t>(LAMBDA(uint32_t, uint64_t, (uint64_t)a * b + b));
}
TEST(conversions_between_widths) {
    return check_binary<int64_t, int64_t>(LAMBDA(int64_t, int64_t, (int64_t)(int8_t)a + (int64_t)(uint16_t)b * 65536 + (int32_t)a)) && check_binary<int32_t, int64_t>(LAMBDA(int32_t, int64_t, (int64_t)a * 2 + (uint32_t)b)) &&
           check_binary<int32_t, int32_t>(LAMBDA(int32_t, int32_t, (int8_t)a * 3 + (int16_t)b + (uint8_t)a)) && check_binary<int32_t, uint64_t>(LAMBDA(int32_t, uint64_t, (uint64_t)(uint32_t)a - (uint64_t)b));
}
// Index arithmetic that wraps around within a warp: the result differs from lane to lane by other than a fixed step.
__global__ void wrapping(uint64_t *out, int64_t *s, unsigned step, unsigned start) {
    unsigned i = threadIdx.x;
    out[i] = (uint64_t)(start + i * step);
    s[i] = (int64_t)(int)(start + i * step);
}
TEST(index_arithmetic_that_wraps) {
    Array<uint64_t> out(96);
    Array<int64_t> s(96);
    wrapping<<<1, 96>>>(out.device, s.device, 0x10000001u, 0xfffffff0u);
    if (!finished()) return false;
    return equal(out.down(), [](size_t i) { return (uint64_t)(uint32_t)(0xfffffff0u + i * 0x10000001u); }) && equal(s.down(), [](size_t i) { return (int64_t)(int32_t)(0xfffffff0u + i * 0x10000001u); });
}

// What tools/emulator_fuzz found. One instruction on the device, a model on the host.
#ifdef __CUDA_ARCH__
#define PTX(R, V, text, ...) do { R d_; asm(text : "=" V(d_) : __VA_ARGS__); return d_; } while (0)
#else
#define PTX(...) (void)0
#endif
#define MODEL(T, R, V, expression, ...) [] __host__ __device__(T a, T b) -> R { (void)a; (void)b; PTX(R, V, __VA_ARGS__); return (R)(expression); }
static __host__ __device__ int64_t held(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

// The compiler divides with chains in which an addc reads what a subc.cc wrote: the carry of a subtraction is "no borrow".
TEST(divide_128) {
    typedef unsigned __int128 wide;
    return check_binary<uint64_t, uint64_t>(LAMBDA(uint64_t, uint64_t, (((wide)a << 64 | b) / ((wide)(b >> 9) << (a & 31) | 1)))) &&
           check_binary<uint64_t, uint64_t>(LAMBDA(uint64_t, uint64_t, (((wide)a << 64 | b) / (a >> 3 | 1)) >> 64)) &&
           check_binary<uint64_t, uint64_t>(LAMBDA(uint64_t, uint64_t, ((wide)b << 37 ^ a) % (b | 1))) &&
           check_binary<int64_t, int64_t>(LAMBDA(int64_t, int64_t, ((__int128)a * b - a) / ((b >> 7) | 1)));
}
TEST(carry_of_a_subtraction) {
    return check_binary<uint32_t, uint32_t>([] __host__ __device__(uint32_t a, uint32_t b) -> uint32_t {
#ifdef __CUDA_ARCH__
               uint32_t d, c, e;
               asm("sub.cc.u32 %0, %3, %4; addc.u32 %1, 0, 0; add.cc.u32 %0, %3, %4; subc.u32 %2, 10, 0;" : "=&r"(d), "=&r"(c), "=&r"(e) : "r"(a), "r"(b));
               return d ^ c << 5 ^ e << 10;
#else
               return (a + b) ^ (uint32_t)(a >= b) << 5 ^ (9u + ((uint64_t)a + b > 0xffffffffull)) << 10;
#endif
           });
}
TEST(multiply_add_high_saturated) {
    return check_binary<int32_t, int32_t>(MODEL(int32_t, int32_t, "r", held(((int64_t)a * b >> 32) + a, INT32_MIN, INT32_MAX), "mad.hi.sat.s32 %0, %1, %2, %1;", "r"(a), "r"(b)));
}
TEST(multiply_24_high) {
    return check_binary<uint32_t, uint32_t>(MODEL(uint32_t, uint32_t, "r", (uint64_t)(a & 0xffffff) * (b & 0xffffff) >> 16, "mul24.hi.u32 %0, %1, %2;", "r"(a), "r"(b))) &&
           check_binary<int32_t, int32_t>(MODEL(int32_t, int32_t, "r", ((int64_t)(int32_t)((uint32_t)a << 8) >> 8) * ((int32_t)((uint32_t)b << 8) >> 8) >> 16, "mul24.hi.s32 %0, %1, %2;", "r"(a), "r"(b)));
}
TEST(saturated_narrowing) {
    return check_binary<int64_t, int32_t>(MODEL(int64_t, int32_t, "r", held(a, -128, 127), "{ .reg .s32 t; cvt.sat.s8.s64 t, %1; mov.b32 %0, t; }", "l"(a))) &&
           check_binary<int64_t, uint32_t>(MODEL(int64_t, uint32_t, "r", held(a, 0, 65535), "{ .reg .u32 t; cvt.sat.u16.s64 t, %1; mov.b32 %0, t; }", "l"(a))) &&
           check_binary<int64_t, int32_t>(MODEL(int64_t, int32_t, "r", held(a, INT32_MIN, INT32_MAX), "cvt.sat.s32.s64 %0, %1;", "l"(a))) &&
           check_binary<uint64_t, int32_t>(MODEL(uint64_t, int32_t, "r", a > INT32_MAX ? INT32_MAX : (int32_t)a, "cvt.sat.s32.u64 %0, %1;", "l"(a))) &&
           check_binary<uint64_t, uint32_t>(MODEL(uint64_t, uint32_t, "r", a > UINT32_MAX ? UINT32_MAX : (uint32_t)a, "cvt.sat.u32.u64 %0, %1;", "l"(a))) &&
           check_binary<int32_t, uint64_t>(MODEL(int32_t, uint64_t, "l", a < 0 ? 0 : a, "cvt.sat.u64.s32 %0, %1;", "r"(a)));
}
__global__ void saturate_one(uint64_t all, int32_t *out) {
    asm("cvt.sat.s32.u64 %0, %1;" : "=r"(out[0]) : "l"(all));
}
TEST(saturated_narrowing_of_a_number_all_threads_share) {
    Array<int32_t> out(1);
    saturate_one<<<1, 1>>>(0xffff000000000000ull, out.device);
    return finished() && equal(out.down(), [](size_t) { return INT32_MAX; });
}
TEST(dot_products_of_two) {
    return check_binary<uint32_t, uint32_t>(ON_DEVICE(__dp2a_lo(a, b, a), a + (a & 0xffff) * (b & 255) + (a >> 16) * (b >> 8 & 255))) &&
           check_binary<uint32_t, uint32_t>(ON_DEVICE(__dp2a_hi(a, b, a), a + (a & 0xffff) * (b >> 16 & 255) + (a >> 16) * (b >> 24))) &&
           check_binary<int32_t, int32_t>([] __host__ __device__(int32_t a, int32_t b) -> int32_t {
               return (int32_t)NV(__dp2a_lo(a, b, 5), 5u + (uint32_t)((int16_t)a * (int8_t)b) + (uint32_t)((int16_t)(a >> 16) * (int8_t)(b >> 8)));
           });
}
static __host__ __device__ uint32_t difference(uint32_t a, uint32_t b, int i) { return (uint32_t)abs((int)(a >> i & 255) - (int)(b >> i & 255)); }
TEST(differences_of_four_bytes) {
    return check_binary<uint32_t, uint32_t>(ON_DEVICE(__vabsdiffu4(a, b), difference(a, b, 0) | difference(a, b, 8) << 8 | difference(a, b, 16) << 16 | difference(a, b, 24) << 24)) &&
           check_binary<uint32_t, uint32_t>(ON_DEVICE(__vsadu4(a, b), difference(a, b, 0) + difference(a, b, 8) + difference(a, b, 16) + difference(a, b, 24)));
}
TEST(fields_of_bits) {
    return check_binary<uint32_t, uint32_t>(MODEL(uint32_t, uint32_t, "r", ((1ull << (b & 31)) - 1) << (a & 31), "bmsk.wrap.b32 %0, %1, %2;", "r"(a), "r"(b))) &&
           check_binary<uint32_t, uint32_t>(MODEL(uint32_t, uint32_t, "r", (a & 63) > 31 ? 0 : ((1ull << ((b & 63) > 32 ? 32 : b & 63)) - 1) << (a & 63), "bmsk.clamp.b32 %0, %1, %2;", "r"(a & 63), "r"(b & 63))) &&
           check_binary<uint32_t, uint32_t>(MODEL(uint32_t, uint32_t, "r", a & ((1ull << (b & 31)) - 1), "szext.wrap.u32 %0, %1, %2;", "r"(a), "r"(b))) &&
           check_binary<int32_t, int32_t>(MODEL(int32_t, int32_t, "r", (b & 63) == 0 ? 0 : (b & 63) > 31 ? a : (int32_t)((uint32_t)a << (32 - (b & 63))) >> (32 - (b & 63)), "szext.clamp.s32 %0, %1, %2;", "r"(a), "r"(b & 63)));
}
// nvcc leaves a register unwritten whose bits nobody looks at.
__global__ void low_halves(const uint32_t *in, uint16_t *out) {
    uint64_t pair;
    asm("{ .reg .b32 never; mov.b64 %0, {%1, never}; }" : "=l"(pair) : "r"(in[threadIdx.x]));
    out[threadIdx.x] = (uint16_t)pair;
}
TEST(pair_with_an_unwritten_half) {
    Array<uint32_t> in(64, [](size_t i) { return noise(i); }, 0);
    Array<uint16_t> out(64);
    low_halves<<<1, 64>>>(in.device, out.device);
    return finished() && equal(out.down(), [&](size_t i) { return in.host[i]; });
}
