// Floating point: rounding modes, saturation, conversions, special values, mathematics.
#include "conformance.h"

#include <cfenv>

static float sample(uint64_t i) {
    switch (noise(i + 77) % 13) {
    case 0: return 0.0f;
    case 1: return -0.0f;
    case 2: return INFINITY;
    case 3: return -INFINITY;
    case 4: return NAN;
    case 5: return 1e-40f * (float)(noise(i) % 1000);
    case 6: return -1.0f;
    default: {
        uint32_t u = noise(i);
        u = (u & 0x807fffffu) | (100 + (u >> 23 & 255) % 56) << 23;
        float f;
        memcpy(&f, &u, 4);
        return f;
    }
    }
}
static double sample64(uint64_t i) { return (double)sample(i) * (1.0 + 1e-9 * (double)(noise(i) % 1000)); }
static bool same(float a, float b) { return (std::isnan(a) && std::isnan(b)) || memcmp(&a, &b, 4) == 0; }
static bool same(double a, double b) { return (std::isnan(a) && std::isnan(b)) || memcmp(&a, &b, 8) == 0; }
template <class T, class F> bool all(const std::vector<T> &got, F f, const char *what) {
    for (size_t i = 0; i < got.size(); i++) {
        T want = f(i);
        if (!same(want, got[i])) {
            printf("  %s, element %zu: got %.17g, expected %.17g\n", what, i, (double)got[i], (double)want);
            return false;
        }
    }
    return true;
}

template <class T, class F> __global__ void apply(const T *a, const T *b, const T *c, T *out, int n, F f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = f(a[i], b[i], c[i]);
}
template <class F, class H> bool check32(F f, H h, const char *what, int mode = FE_TONEAREST) {
    const int n = 2000;
    Array<float> a(n, [](size_t i) { return sample(i); }, 0), b(n, [](size_t i) { return sample(i + n); }, 0), c(n, [](size_t i) { return sample(i + 2 * n); }, 0), out(n);
    apply<<<8, 256>>>(a.device, b.device, c.device, out.device, n, f);
    if (!finished()) return false;
    return all(out.down(), [&](size_t i) {
        fesetround(mode);
        volatile float x = a.host[i], y = b.host[i], z = c.host[i];
        volatile float r = h(x, y, z);
        fesetround(FE_TONEAREST);
        return (float)r; }, what);
}
template <class F, class H> bool check64(F f, H h, const char *what, int mode = FE_TONEAREST) {
    const int n = 1000;
    Array<double> a(n, [](size_t i) { return sample64(i); }, 0), b(n, [](size_t i) { return sample64(i + n); }, 0), c(n, [](size_t i) { return sample64(i + 2 * n); }, 0), out(n);
    apply<<<4, 256>>>(a.device, b.device, c.device, out.device, n, f);
    if (!finished()) return false;
    return all(out.down(), [&](size_t i) {
        fesetround(mode);
        volatile double x = a.host[i], y = b.host[i], z = c.host[i];
        volatile double r = h(x, y, z);
        fesetround(FE_TONEAREST);
        return (double)r; }, what);
}
#define D(e) [] __device__(float a, float b, float c) -> float { (void)a; (void)b; (void)c; return (e); }
#define H(e) [](volatile float &a, volatile float &b, volatile float &c) -> float { (void)a; (void)b; (void)c; return (e); }
#define DD(e) [] __device__(double a, double b, double c) -> double { (void)a; (void)b; (void)c; return (e); }
#define HH(e) [](volatile double &a, volatile double &b, volatile double &c) -> double { (void)a; (void)b; (void)c; return (e); }

TEST(add_multiply_divide_float) {
    return check32(D(__fadd_rn(a, b)), H(a + b), "add") && check32(D(__fsub_rn(a, b)), H(a - b), "sub") && check32(D(__fmul_rn(a, b)), H(a * b), "mul") && check32(D(__fdiv_rn(a, b)), H(a / b), "div") &&
           check32(D(fmaf(a, b, c)), H(std::fma((float)a, (float)b, (float)c)), "fma");
}
TEST(rounding_modes_float) {
    return check32(D(__fadd_rd(a, b)), H(a + b), "add rd", FE_DOWNWARD) && check32(D(__fadd_ru(a, b)), H(a + b), "add ru", FE_UPWARD) && check32(D(__fadd_rz(a, b)), H(a + b), "add rz", FE_TOWARDZERO) &&
           check32(D(__fmul_rd(a, b)), H(a * b), "mul rd", FE_DOWNWARD) && check32(D(__fmul_ru(a, b)), H(a * b), "mul ru", FE_UPWARD) && check32(D(__fdiv_rz(a, b)), H(a / b), "div rz", FE_TOWARDZERO) &&
           check32(D(__fmaf_ru(a, b, c)), H(std::fma((float)a, (float)b, (float)c)), "fma ru", FE_UPWARD) && check32(D(__fmaf_rd(a, b, c)), H(std::fma((float)a, (float)b, (float)c)), "fma rd", FE_DOWNWARD);
}
TEST(add_multiply_divide_double) {
    return check64(DD(__dadd_rn(a, b)), HH(a + b), "add") && check64(DD(__dmul_rn(a, b)), HH(a * b), "mul") && check64(DD(a / b), HH(a / b), "div") && check64(DD(fma(a, b, c)), HH(std::fma((double)a, (double)b, (double)c)), "fma");
}
TEST(rounding_modes_double) {
    return check64(DD(__dadd_rd(a, b)), HH(a + b), "add rd", FE_DOWNWARD) && check64(DD(__dmul_ru(a, b)), HH(a * b), "mul ru", FE_UPWARD) && check64(DD(__ddiv_rz(a, b)), HH(a / b), "div rz", FE_TOWARDZERO) &&
           check64(DD(__fma_ru(a, b, c)), HH(std::fma((double)a, (double)b, (double)c)), "fma ru", FE_UPWARD) && check64(DD(__dsqrt_rd(fabs(a))), HH(std::sqrt(std::fabs((double)a))), "sqrt rd", FE_DOWNWARD);
}
TEST(square_root_and_reciprocal) {
    return check32(D(__fsqrt_rn(a)), H(std::sqrt((float)a)), "sqrt") && check32(D(__fsqrt_rz(a)), H(std::sqrt((float)a)), "sqrt rz", FE_TOWARDZERO) && check32(D(__frcp_rn(a)), H(1.0f / a), "rcp") &&
           check32(D(__frcp_ru(a)), H(1.0f / a), "rcp ru", FE_UPWARD) && check64(DD(sqrt(a)), HH(std::sqrt((double)a)), "sqrt double") && check64(DD(__drcp_rn(a)), HH(1.0 / a), "rcp double");
}
TEST(minimum_maximum_with_nan_and_zeros) {
    return check32(D(fminf(a, b)), [](volatile float &a, volatile float &b, volatile float &) -> float { return std::isnan(a) ? b : std::isnan(b) ? a : a < b || (a == b && std::signbit(a)) ? a : b; }, "min") &&
           check32(D(fmaxf(a, b)), [](volatile float &a, volatile float &b, volatile float &) -> float { return std::isnan(a) ? b : std::isnan(b) ? a : a > b || (a == b && !std::signbit(a)) ? a : b; }, "max") &&
           check64(DD(fmin(a, b)), [](volatile double &a, volatile double &b, volatile double &) -> double { return std::isnan(a) ? b : std::isnan(b) ? a : a < b || (a == b && std::signbit(a)) ? a : b; }, "min double");
}
TEST(float_comparisons) {
    return check32(D((float)((a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * (a > b) + 32 * (a >= b) + 64 * !(a < b))),
                   H((float)((a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * (a > b) + 32 * (a >= b) + 64 * !(a < b))), "compare") &&
           check64(DD((double)((a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * !(a >= b))), HH((double)((a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * !(a >= b))), "compare double") &&
           check32(D((float)(isnan(a) + 2 * isinf(a) + 4 * isfinite(a) + 8 * (signbit(a) != 0))), H((float)(std::isnan(a) + 2 * std::isinf(a) + 4 * std::isfinite(a) + 8 * std::signbit(a))), "class");
}
TEST(saturation) {
    return check32(D(__saturatef(a)), H(!(a > 0) ? 0.0f : a > 1 ? 1.0f : a), "saturate");
}
TEST(round_to_integers) {
    return check32(D(rintf(a)), H(std::rint((float)a)), "rint") && check32(D(floorf(a)), H(std::floor((float)a)), "floor") && check32(D(ceilf(a)), H(std::ceil((float)a)), "ceil") &&
           check32(D(truncf(a)), H(std::trunc((float)a)), "trunc") && check32(D(roundf(a)), H(std::round((float)a)), "round") && check64(DD(floor(a * 1e3)), HH(std::floor(a * 1e3)), "floor double") && check64(DD(rint(a)), HH(std::rint((double)a)), "rint double");
}
static int32_t to_int(double x) { return std::isnan(x) ? 0 : x >= 2147483647.0 ? INT32_MAX : x <= -2147483648.0 ? INT32_MIN : (int32_t)x; }
static uint32_t to_unsigned(double x) { return std::isnan(x) ? 0 : x >= 4294967295.0 ? UINT32_MAX : x <= 0 ? 0 : (uint32_t)x; }
__global__ void to_integers(const float *a, const double *b, int32_t *i, uint32_t *u, int64_t *l, int32_t *n, int32_t *di, uint32_t *un, uint64_t *du, int count) {
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= count) return;
    i[k] = (int32_t)a[k], u[k] = (uint32_t)a[k], l[k] = (int64_t)a[k], n[k] = __float2int_rn(a[k]), di[k] = (int32_t)b[k], un[k] = (uint32_t)b[k], du[k] = (uint64_t)b[k];
}
TEST(floats_to_integers) {
    const int n = 1500;
    Array<float> a(n, [](size_t i) { return sample(i) * 1e3f; }, 0);
    Array<double> b(n, [](size_t i) { return sample64(i) * 1e3; }, 0);
    Array<int32_t> i(n), r(n), di(n);
    Array<uint32_t> u(n), un(n);
    Array<int64_t> l(n);
    Array<uint64_t> du(n);
    to_integers<<<6, 256>>>(a.device, b.device, i.device, u.device, l.device, r.device, di.device, un.device, du.device, n);
    if (!finished()) return false;
    return equal(i.down(), [&](size_t k) { return to_int(a.host[k]); }) && equal(u.down(), [&](size_t k) { return to_unsigned(a.host[k]); }) &&
           equal(l.down(), [&](size_t k) { double x = a.host[k]; return std::isnan(x) ? INT64_MIN : x >= 9.2233720368547758e18 ? INT64_MAX : x <= -9.2233720368547758e18 ? INT64_MIN : (int64_t)x; }) &&
           equal(r.down(), [&](size_t k) { return to_int(std::rint((double)a.host[k])); }) && equal(di.down(), [&](size_t k) { return std::isnan(b.host[k]) ? INT32_MIN : to_int(b.host[k]); }) &&
           equal(un.down(), [&](size_t k) { return std::isnan(b.host[k]) ? 1u << 31 : to_unsigned(b.host[k]); }) &&
           equal(du.down(), [&](size_t k) { double x = b.host[k]; return std::isnan(x) ? 1ull << 63 : x >= 18446744073709551615.0 ? UINT64_MAX : x <= 0 ? 0 : (uint64_t)x; });
}
__global__ void from_integers(const int64_t *a, float *f, double *d, float *u, float *down, float *small, int n) {
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    f[k] = (float)a[k], d[k] = (double)(uint64_t)a[k], u[k] = (float)(uint32_t)a[k] + (float)(int32_t)a[k], down[k] = __int2float_rd((int)a[k]), small[k] = (float)(int8_t)a[k] + (float)(uint16_t)a[k];
}
TEST(integers_to_floats) {
    const int n = 1000;
    Array<int64_t> a(n, [](size_t i) { return (int64_t)noise64(i) >> (noise(i) % 60); }, 0);
    Array<float> f(n), u(n), down(n), small(n);
    Array<double> d(n);
    from_integers<<<4, 256>>>(a.device, f.device, d.device, u.device, down.device, small.device, n);
    if (!finished()) return false;
    return all(f.down(), [&](size_t i) { return (float)a.host[i]; }, "s64") && all(d.down(), [&](size_t i) { return (double)(uint64_t)a.host[i]; }, "u64") &&
           all(u.down(), [&](size_t i) { return (float)(uint32_t)a.host[i] + (float)(int32_t)a.host[i]; }, "32") &&
           all(down.down(), [&](size_t i) { fesetround(FE_DOWNWARD); volatile int x = (int)a.host[i]; volatile float r = (float)x; fesetround(FE_TONEAREST); return (float)r; }, "rd") &&
           all(small.down(), [&](size_t i) { return (float)(int8_t)a.host[i] + (float)(uint16_t)a.host[i]; }, "small");
}
TEST(float_and_double) {
    return check64(DD((double)(float)a), HH((double)(float)a), "narrow") && check64(DD((double)__double2float_rz(a)), HH((double)(float)a), "narrow rz", FE_TOWARDZERO) && check32(D((float)((double)a * b)), H((float)((double)a * b)), "wide");
}
__global__ void mathematics(const float *x, float *out, int n, int which) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i], r = 0;
    switch (which) {
    case 0: r = expf(v); break;
    case 1: r = exp2f(v); break;
    case 2: r = logf(fabsf(v)); break;
    case 3: r = log2f(fabsf(v)); break;
    case 4: r = sinf(v); break;
    case 5: r = cosf(v); break;
    case 6: r = tanf(v); break;
    case 7: r = tanhf(v); break;
    case 8: r = powf(fabsf(v), 1.7f); break;
    case 9: r = rsqrtf(fabsf(v)); break;
    case 10: r = erff(v); break;
    case 11: r = atan2f(v, 0.7f); break;
    case 12: r = cbrtf(v); break;
    case 13: r = log1pf(fabsf(v)); break;
    case 14: r = fmodf(v * 100, 7.3f); break;
    case 15: r = expm1f(v); break;
    case 16: r = acosf(v / 4); break;
    case 17: r = hypotf(v, 2); break;
    case 18: r = ldexpf(v, 5); break;
    case 19: r = sinhf(v); break;
    }
    out[i] = r;
}
static double reference(int which, double v) {
    switch (which) {
    case 0: return exp(v);
    case 1: return exp2(v);
    case 2: return log(fabs(v));
    case 3: return log2(fabs(v));
    case 4: return sin(v);
    case 5: return cos(v);
    case 6: return tan(v);
    case 7: return tanh(v);
    case 8: return pow(fabs(v), (double)1.7f);
    case 9: return 1 / sqrt(fabs(v));
    case 10: return erf(v);
    case 11: return atan2(v, (double)0.7f);
    case 12: return cbrt(v);
    case 13: return log1p(fabs(v));
    case 14: return fmod((double)((float)v * 100), (double)7.3f);
    case 15: return expm1(v);
    case 16: return acos(v / 4);
    case 17: return hypot(v, 2);
    case 18: return ldexp(v, 5);
    default: return sinh(v);
    }
}
TEST(math_functions) {
    const int n = 1000;
    Array<float> x(n, [](size_t i) { return uniform(i); }, 0), out(n);
    for (int which = 0; which < 20; which++) {
        mathematics<<<4, 256>>>(x.device, out.device, n, which);
        if (!finished()) return false;
        if (!close(out.down(), [&](size_t i) { return reference(which, x.host[i]); }, 6e-7, which == 6 ? 1e-6 : 2e-7)) {
            printf("  function %d\n", which);
            return false;
        }
    }
    return true;
}
__global__ void mathematics64(const double *x, double *out, int n, int which) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double v = x[i];
    out[i] = which == 0 ? exp(v) : which == 1 ? log(fabs(v)) : which == 2 ? sin(v) : which == 3 ? pow(fabs(v), 1.7) : which == 4 ? tanh(v) : rsqrt(fabs(v));
}
TEST(math_functions_double) {
    const int n = 500;
    Array<double> x(n, [](size_t i) { return (double)uniform(i); }, 0), out(n);
    for (int which = 0; which < 6; which++) {
        mathematics64<<<2, 256>>>(x.device, out.device, n, which);
        if (!finished()) return false;
        auto want = [&](size_t i) {
            double v = x.host[i];
            return which == 0 ? exp(v) : which == 1 ? log(fabs(v)) : which == 2 ? sin(v) : which == 3 ? pow(fabs(v), 1.7) : which == 4 ? tanh(v) : 1 / sqrt(fabs(v));
        };
        if (!close(out.down(), want, 1e-14, 1e-15)) {
            printf("  function %d\n", which);
            return false;
        }
    }
    return true;
}
__global__ void fast_mathematics(const float *x, float *out, int n, int which) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    out[i] = which == 0 ? __expf(v) : which == 1 ? __logf(fabsf(v) + 0.1f) : which == 2 ? __sinf(v) : which == 3 ? __cosf(v) : which == 4 ? __fdividef(v, 1.7f) : which == 5 ? __powf(fabsf(v), 1.3f) : __frsqrt_rn(fabsf(v) + 0.1f);
}
TEST(fast_intrinsics) {
    const int n = 500;
    Array<float> x(n, [](size_t i) { return uniform(i); }, 0), out(n);
    for (int which = 0; which < 7; which++) {
        fast_mathematics<<<2, 256>>>(x.device, out.device, n, which);
        if (!finished()) return false;
        auto want = [&](size_t i) -> double {
            double v = x.host[i];
            return which == 0 ? exp(v) : which == 1 ? log(fabs(v) + 0.1) : which == 2 ? sin(v) : which == 3 ? cos(v) : which == 4 ? v / (double)1.7f : which == 5 ? pow(fabs(v), (double)1.3f) : 1 / sqrt(fabs(v) + 0.1);
        };
        if (!close(out.down(), want, 2e-6, 1e-6)) {
            printf("  function %d\n", which);
            return false;
        }
    }
    return true;
}

// Bytes of doubles, as only inline assembly asks for them; found by tools/emulator_fuzz, as is the next one.
__global__ void doubles_to_bytes(const double *x, int *out, int n) {
    int i = threadIdx.x;
    asm("{ .reg .s32 t; cvt.rzi.sat.s8.f64 t, %1; mov.b32 %0, t; }" : "=r"(out[i]) : "d"(x[i]));
    asm("{ .reg .u32 t; cvt.rni.sat.u8.f64 t, %1; mov.b32 %0, t; }" : "=r"(out[n + i]) : "d"(x[i]));
}
TEST(doubles_to_bytes_saturate) {
    const int n = 64;
    Array<double> x(n, [](size_t i) { return i == 0 ? INFINITY : i == 1 ? -INFINITY : i == 2 ? 127.9 : (double)uniform(i, -400, 400); }, 0);
    Array<int> out(2 * n);
    doubles_to_bytes<<<1, n>>>(x.device, out.device, n);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t i) {
        double v = x.host[i % n];
        return (int)(i < n ? std::min(127.0, std::max(-128.0, trunc(v))) : std::min(255.0, std::max(0.0, rint(v))));
    });
}
// A signalling NaN is a NaN like any other for a GPU: the number wins.
__global__ void smallest_and_largest(const uint32_t *a, const uint64_t *b, float *f, double *d, int n) {
    int i = threadIdx.x;
    f[i] = fminf(__uint_as_float(a[i]), 2.5f), f[n + i] = fmaxf(-1.0f, __uint_as_float(a[i]));
    d[i] = fmin(3.5, __longlong_as_double((long long)b[i])), d[n + i] = fmax(__longlong_as_double((long long)b[i]), -7.0);
}
TEST(minimum_and_maximum_with_signalling_nans) {
    const int n = 32;
    Array<uint32_t> a(n, [](size_t i) { return i % 3 == 0 ? 0x7f800001u + (uint32_t)i : i % 3 == 1 ? 0xff923456u : 0x7fc00000u; }, 0);
    Array<uint64_t> b(n, [](size_t i) { return i % 2 ? 0x7ff0000000000001ull : 0xfff8000000000000ull; }, 0);
    Array<float> f(2 * n);
    Array<double> d(2 * n);
    smallest_and_largest<<<1, n>>>(a.device, b.device, f.device, d.device, n);
    return finished() && equal(f.down(), [=](size_t i) { return i < n ? 2.5f : -1.0f; }) && equal(d.down(), [=](size_t i) { return i < n ? 3.5 : -7.0; });
}
// The thread's number, taken for the bits of a float: nothing that grows evenly from lane to lane as a float does.
__global__ void numbers_as_bits(double *d, float *f, int *order, int start) {
    int i = threadIdx.x;
    double x = __longlong_as_double((long long)start + i * 3ll);
    float y = __int_as_float(start + i * 5);
    order[i] = (x == x) + 2 * (x < 1.0) + 4 * (y == y) + 8 * (y < 1.0f);
    d[i] = x * 4.0, f[i] = y * 4.0f;
}
TEST(integers_taken_for_floats) {
    const int n = 64, start = 0x3f7ffff0;
    Array<double> d(n);
    Array<float> f(n);
    Array<int> order(n);
    numbers_as_bits<<<1, n>>>(d.device, f.device, order.device, start);
    auto as_double = [=](size_t i) { long long b = start + (long long)i * 3; double x; memcpy(&x, &b, 8); return x; };
    auto as_float = [=](size_t i) { int b = start + (int)i * 5; float x; memcpy(&x, &b, 4); return x; };
    return finished() && equal(d.down(), [=](size_t i) { return as_double(i) * 4.0; }) && equal(f.down(), [=](size_t i) { return as_float(i) * 4.0f; }) &&
           equal(order.down(), [=](size_t i) { return 7 + 8 * (as_float(i) < 1.0f); });
}
