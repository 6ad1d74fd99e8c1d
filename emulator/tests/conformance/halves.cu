// fp16 and bf16, scalar and packed.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "conformance.h"

static float round_to(float x, int bits, int least) { // to a format of `bits` significand bits and least exponent
    if (x == 0 || std::isnan(x) || std::isinf(x)) return x;
    int e;
    frexp((double)x, &e);
    int q = std::max(e - bits, least - bits + 1);
    return (float)ldexp(rint(ldexp((double)x, -q)), q);
}
static float half_of(double x) { float r = round_to((float)x, 11, -14); return fabsf(r) > 65504 ? std::copysign(INFINITY, r) : r; }
static float half_exact(double x) { // rounds a double once
    if (x == 0 || std::isnan(x) || std::isinf(x)) return (float)x;
    int e;
    frexp(x, &e);
    int q = std::max(e - 11, -14 - 10);
    float r = (float)ldexp(rint(ldexp(x, -q)), q);
    return fabsf(r) > 65504 ? std::copysign(INFINITY, r) : r;
}
static float bf_exact(double x) {
    if (x == 0 || std::isnan(x) || std::isinf(x)) return (float)x;
    int e;
    frexp(x, &e);
    return (float)ldexp(rint(ldexp(x, 8 - e)), e - 8);
}

__global__ void half_arithmetic(const float *a, const float *b, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half x = __float2half(a[i]), y = __float2half(b[i]);
    out[i] = __half2float(x + y);
    out[n + i] = __half2float(x * y);
    out[2 * n + i] = __half2float(__hfma(x, y, x));
    out[3 * n + i] = __half2float(x - y) + (x < y ? 1.0f : 0.0f);
    out[4 * n + i] = __half2float(__hmax(x, y)) + __half2float(__habs(x)) + __half2float(__hneg(y));
    out[5 * n + i] = (float)__half2int_rn(x) + __half2float(__int2half_rn(i * 37));
}
TEST(half_arithmetic) {
    const int n = 500;
    Array<float> a(n, [](size_t i) { return uniform(i) * (noise(i) % 3 == 0 ? 1e-4f : 10.0f); }, 0), b(n, [](size_t i) { return uniform(i + n); }, 0), out(6 * n);
    half_arithmetic<<<2, 256>>>(a.device, b.device, out.device, n);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t k) {
        size_t i = k % n;
        double x = half_exact(a.host[i]), y = half_exact(b.host[i]);
        switch (k / n) {
        case 0: return half_exact(x + y);
        case 1: return half_exact(x * y);
        case 2: return half_exact(x * y + x);
        case 3: return half_exact(x - y) + (x < y ? 1.0f : 0.0f);
        case 4: return (float)std::max(x, y) + fabsf((float)x) + -(float)y;
        default: return (float)rint(x) + half_exact((double)(i * 37));
        }
    });
}
__global__ void half2_arithmetic(const float2 *a, const float2 *b, float2 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half2 x = __float22half2_rn(a[i]), y = __float22half2_rn(b[i]);
    out[i] = __half22float2(__hfma2(x, y, __hadd2(x, y)));
    out[n + i] = __half22float2(__hmul2(__lowhigh2highlow(x), y));
    out[2 * n + i] = make_float2(__half2float(__low2half(x)), __half2float(__high2half(y)));
    out[3 * n + i] = __half22float2(__hgt2(x, y));
}
TEST(packed_halves) {
    const int n = 300;
    Array<float2> a(n), b(n), out(4 * n);
    for (int i = 0; i < n; i++) a.host[i] = make_float2(uniform(4 * i), uniform(4 * i + 1)), b.host[i] = make_float2(uniform(4 * i + 2), uniform(4 * i + 3));
    a.up(), b.up();
    half2_arithmetic<<<3, 128>>>(a.device, b.device, out.device, n);
    if (!finished()) return false;
    out.down();
    for (int i = 0; i < n; i++) {
        double x[2] = {half_exact(a.host[i].x), half_exact(a.host[i].y)}, y[2] = {half_exact(b.host[i].x), half_exact(b.host[i].y)};
        EXPECT(out.host[i].x == half_exact(x[0] * y[0] + half_exact(x[0] + y[0])) && out.host[i].y == half_exact(x[1] * y[1] + half_exact(x[1] + y[1])));
        EXPECT(out.host[n + i].x == half_exact(x[1] * y[0]) && out.host[n + i].y == half_exact(x[0] * y[1]));
        EXPECT(out.host[2 * n + i].x == (float)x[0] && out.host[2 * n + i].y == (float)y[1]);
        EXPECT(out.host[3 * n + i].x == (x[0] > y[0]) && out.host[3 * n + i].y == (x[1] > y[1]));
    }
    return true;
}
__global__ void bfloat_arithmetic(const float *a, const float *b, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __nv_bfloat16 x = __float2bfloat16(a[i]), y = __float2bfloat16(b[i]);
    out[i] = __bfloat162float(x + y);
    out[n + i] = __bfloat162float(x * y);
    out[2 * n + i] = __bfloat162float(__hfma(x, y, y));
    __nv_bfloat162 p = __halves2bfloat162(x, y);
    p = __hmul2(p, p);
    out[3 * n + i] = __bfloat162float(__low2bfloat16(p)) + __bfloat162float(__high2bfloat16(p));
}
TEST(bfloat16_arithmetic) {
    const int n = 400;
    Array<float> a(n, [](size_t i) { return uniform(i); }, 0), b(n, [](size_t i) { return uniform(i + n); }, 0), out(4 * n);
    bfloat_arithmetic<<<2, 256>>>(a.device, b.device, out.device, n);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t k) {
        size_t i = k % n;
        double x = bf_exact(a.host[i]), y = bf_exact(b.host[i]);
        switch (k / n) {
        case 0: return bf_exact(x + y);
        case 1: return bf_exact(x * y);
        case 2: return bf_exact(x * y + y);
        default: return bf_exact(x * x) + bf_exact(y * y);
        }
    });
}
__global__ void half_special(const float *a, unsigned short *out, float *back, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    out[i] = __half_as_ushort(__float2half_rn(a[i]));
    out[n + i] = __half_as_ushort(__float2half_rz(a[i]));
    back[i] = __half2float(__ushort_as_half((unsigned short)(i * 257)));
}
TEST(half_conversions_of_special_values) {
    Array<float> a(12);
    a.host = {0.0f, -0.0f, INFINITY, -INFINITY, 65504.0f, 65520.0f, 1e9f, 6e-8f, 2e-8f, -3.05e-5f, 1.0009765f, 70000.0f};
    a.up();
    Array<unsigned short> out(24);
    Array<float> back(12);
    half_special<<<1, 32>>>(a.device, out.device, back.device, 12);
    if (!finished()) return false;
    const unsigned short want[24] = {0, 0x8000, 0x7c00, 0xfc00, 0x7bff, 0x7c00, 0x7c00, 1, 0, 0x8200, 0x3c01, 0x7c00, 0, 0x8000, 0x7c00, 0xfc00, 0x7bff, 0x7bff, 0x7bff, 1, 0, 0x81ff, 0x3c00, 0x7bff};
    out.down(), back.down();
    for (int i = 0; i < 24; i++)
        if (i != 9 && i != 21) EXPECT(out.host[i] == want[i]);
    for (int i = 0; i < 12; i++) {
        int h = i * 257;
        EXPECT(back.host[i] == (float)ldexp((h >> 10 ? 1024 : 0) + (h & 1023), (h >> 10 ? h >> 10 : 1) - 25));
    }
    return true;
}
__global__ void half_atomics(__half2 *p, __half *q) {
    atomicAdd(p, __floats2half2_rn(1.0f, 0.5f));
    atomicAdd(q, __float2half(2.0f));
}
TEST(half_atomics) {
    Array<unsigned> p(1), q(1);
    half_atomics<<<2, 64>>>((__half2 *)p.device, (__half *)q.device);
    if (!finished()) return false;
    EXPECT(p.down()[0] == (0x5800u | 0x5400u << 16)); // 128 and 64
    EXPECT((q.down()[0] & 0xffff) == 0x5c00);         // 256
    return true;
}
__global__ void half_softmax(const __half *in, __half *out, int n) {
    float m = -INFINITY, s = 0;
    const __half *row = in + blockIdx.x * n;
    for (int i = threadIdx.x; i < n; i += 32) m = fmaxf(m, __half2float(row[i]));
    for (int k = 16; k; k >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
    for (int i = threadIdx.x; i < n; i += 32) s += expf(__half2float(row[i]) - m);
    for (int k = 16; k; k >>= 1) s += __shfl_xor_sync(~0u, s, k);
    for (int i = threadIdx.x; i < n; i += 32) out[blockIdx.x * n + i] = __float2half(expf(__half2float(row[i]) - m) / s);
}
TEST(half_softmax) {
    const int n = 100, rows = 6;
    Array<unsigned short> in(n * rows), out(n * rows);
    std::vector<float> x(n * rows);
    for (int i = 0; i < n * rows; i++) x[i] = half_exact(uniform(i)), in.host[i] = __half_as_ushort(__float2half(x[i]));
    in.up();
    half_softmax<<<rows, 32>>>((const __half *)in.device, (__half *)out.device, n);
    if (!finished()) return false;
    out.down();
    std::vector<float> got(n * rows);
    for (int i = 0; i < n * rows; i++) got[i] = __half2float(__ushort_as_half(out.host[i]));
    return close(got, [&](size_t i) {
        double s = 0;
        for (int k = 0; k < n; k++) s += exp(x[i / n * n + k]);
        return exp(x[i]) / s; }, 1e-3);
}
// A product in the middle between two numbers, and a summand too small for a double to show on which side the sum lies.
__global__ void nearly_ties(const unsigned short *a, const unsigned short *b, const unsigned short *c, unsigned short *out) {
    int i = threadIdx.x;
    out[i] = __bfloat16_as_ushort(__hfma(__ushort_as_bfloat16(a[i]), __ushort_as_bfloat16(b[i]), __ushort_as_bfloat16(c[i])));
}
TEST(bf16_fma_rounds_once) {
    // 129/128 · 3/2 = 193.5/128, plus or minus 2^-100, or nothing
    Array<unsigned short> a(6, 0x3f81), b(6), c(6), out(6);
    const unsigned short tiny[3] = {0x0d80, 0x8d80, 0}, want[6] = {0x3fc2, 0x3fc1, 0x3fc2, 0xbfc1, 0xbfc2, 0xbfc2};
    for (int i = 0; i < 6; i++) b.host[i] = i < 3 ? 0x3fc0 : 0xbfc0, c.host[i] = tiny[i % 3];
    b.up(), c.up();
    nearly_ties<<<1, 6>>>(a.device, b.device, c.device, out.device);
    return finished() && equal(out.down(), [&](size_t i) { return want[i]; });
}
