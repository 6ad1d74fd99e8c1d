// What vector code does differently on other processors: rounding, conversions, comparisons, divergence.
#include "conformance/conformance.h"

__global__ void reversed(const int *in, int *out) {
    __shared__ int s[64], r[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    r[63 - t] = s[63 - t] * 3; // lanes go downwards
    __syncthreads();
    out[t] = r[t];
}
TEST(lanes_that_go_downwards) {
    Array<int> in(64, [](size_t i) { return (int)(noise(i) % 1000); }, 0), out(64);
    reversed<<<1, 64>>>(in.device, out.device);
    return finished() && equal(out.down(), [&](size_t i) { return in.host[i] * 3; });
}

__global__ void mixed(const float *x, float *o, int *q, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    o[i] = rintf(v) + floorf(v * 3) * 2 + ceilf(v) + truncf(v) + expf(v) + __fmaf_rd(v, v, 1.1f) + __fadd_ru(v, 0.3f) + sqrtf(fabsf(v)) + fmaxf(v, 0.5f) + (float)(double)(v * 0.1);
    q[i] = (int)(v * 10) + __popc(i) + (i / 7) % 5 + (int)((long long)i * i >> 3) + (v > 0 ? 1 : 0);
}
TEST(mixed) {
    const int n = 1000;
    Array<float> x(n, [](size_t i) { return uniform(i); }, 0), o(n);
    Array<int> q(n);
    mixed<<<8, 128>>>(x.device, o.device, q.device, n);
    if (!finished()) return false;
    return close(o.down(), [&](size_t i) { double v = x.host[i]; return rint(v) + floor((float)(v * 3)) * 2 + ceil(v) + trunc(v) + exp(v) + v * v + 1.1 + v + 0.3 + sqrt(fabs(v)) + fmax(v, 0.5) + v * 0.1; }, 2e-6, 2e-5) &&
           equal(q.down(), [&](size_t i) { float v = x.host[i]; return (int)(v * 10) + __builtin_popcount((unsigned)i) + (int)(i / 7) % 5 + (int)((long long)i * (long long)i >> 3) + (v > 0 ? 1 : 0); });
}
