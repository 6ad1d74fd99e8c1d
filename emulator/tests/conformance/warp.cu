// Communication within a warp.
#include "conformance.h"

__global__ void shuffles(const int *in, int *out, int width) {
    int i = threadIdx.x, v = in[i];
    out[i] = __shfl_sync(~0u, v, (i * 3) & 31, width);
    out[64 + i] = __shfl_up_sync(~0u, v, 3, width);
    out[128 + i] = __shfl_down_sync(~0u, v, 5, width);
    out[192 + i] = __shfl_xor_sync(~0u, v, 6, width);
}
TEST(shuffles) {
    Array<int> in(64, [](size_t i) { return (int)noise(i); }, 0), out(256);
    for (int width : {32, 16, 8}) {
        shuffles<<<1, 64>>>(in.device, out.device, width);
        if (!finished()) return false;
        bool ok = equal(out.down(), [&](size_t k) {
            int i = (int)(k % 64), lane = i & 31, warp = i & ~31, start = lane / width * width, j = lane;
            switch (k / 64) {
            case 0: j = start + (((i * 3) & 31) & (width - 1)); break;
            case 1: j = lane - 3 >= start ? lane - 3 : lane; break;
            case 2: j = lane + 5 < start + width ? lane + 5 : lane; break;
            case 3: j = (lane ^ 6) < start + width ? lane ^ 6 : lane; break;
            }
            return in.host[warp + j];
        });
        if (!ok) return false;
    }
    return true;
}
__global__ void shuffle_types(const double *d, const long long *l, const float *f, double *dout, long long *lout, float *fout) {
    int i = threadIdx.x;
    dout[i] = __shfl_xor_sync(~0u, d[i], 1);
    lout[i] = __shfl_down_sync(~0u, l[i], 1);
    float s = f[i];
    for (int k = 16; k; k >>= 1) s += __shfl_xor_sync(~0u, s, k);
    fout[i] = s;
}
TEST(shuffles_of_wide_types_and_reduction) {
    Array<double> d(32, [](size_t i) { return (double)i * 1.1; }, 0), dout(32);
    Array<long long> l(32, [](size_t i) { return (long long)noise64(i); }, 0), lout(32);
    Array<float> f(32, [](size_t i) { return (float)i; }, 0), fout(32);
    shuffle_types<<<1, 32>>>(d.device, l.device, f.device, dout.device, lout.device, fout.device);
    if (!finished()) return false;
    return equal(dout.down(), [&](size_t i) { return d.host[i ^ 1]; }) && equal(lout.down(), [&](size_t i) { return l.host[i < 31 ? i + 1 : i]; }) && equal(fout.down(), [](size_t) { return 496.0f; });
}
__global__ void votes(const int *in, unsigned *out) {
    int i = threadIdx.x, v = in[i];
    out[i] = __ballot_sync(~0u, v > 50);
    out[64 + i] = (__any_sync(~0u, v == 7) != 0) | (__all_sync(~0u, v >= 0) != 0) << 1;
    unsigned r = 0;
    if (v & 1) r = __activemask();
    out[128 + i] = r;
    if (v % 3 == 0) r = __ballot_sync(__activemask(), v & 2);
    out[192 + i] = v % 3 == 0 ? r : 0;
}
TEST(votes_and_active_mask) {
    Array<int> in(64, [](size_t i) { return (int)(noise(i) % 100); }, 0);
    Array<unsigned> out(256);
    votes<<<1, 64>>>(in.device, out.device);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t k) {
        int i = (int)(k % 64), w = i & ~31;
        unsigned over = 0, odd = 0, third = 0, seven = 0;
        for (int l = 0; l < 32; l++) {
            int v = in.host[w + l];
            over |= (unsigned)(v > 50) << l, odd |= (unsigned)(v & 1) << l, seven |= v == 7, third |= (unsigned)(v % 3 == 0 && (v & 2)) << l;
        }
        return k < 64 ? over : k < 128 ? seven | 2 : k < 192 ? (in.host[i] & 1 ? odd : 0) : in.host[i] % 3 == 0 ? third : 0;
    });
}
__global__ void matches(const int *in, unsigned *any, unsigned *all, int *reduced) {
    int i = threadIdx.x;
    any[i] = __match_any_sync(~0u, in[i] & 3);
    int p;
    all[i] = __match_all_sync(~0u, in[i & 32], &p) + (unsigned)p;
    reduced[i] = __reduce_add_sync(~0u, in[i]) ^ __reduce_max_sync(~0u, in[i]) * 3 ^ (int)__reduce_or_sync(~0u, (unsigned)in[i]) * 5;
}
TEST(match_and_reduce) {
    Array<int> in(64, [](size_t i) { return (int)(noise(i) % 1000); }, 0), reduced(64);
    Array<unsigned> any(64), all(64);
    matches<<<1, 64>>>(in.device, any.device, all.device, reduced.device);
    if (!finished()) return false;
    return equal(any.down(), [&](size_t i) { unsigned m = 0; for (int l = 0; l < 32; l++) m |= (unsigned)((in.host[(i & 32) + l] & 3) == (in.host[i] & 3)) << l; return m; }) &&
           equal(all.down(), [](size_t) { return 0u; }) && equal(reduced.down(), [&](size_t i) {
               int s = 0, m = INT32_MIN, o = 0;
               for (int l = 0; l < 32; l++) s += in.host[(i & 32) + l], m = std::max(m, in.host[(i & 32) + l]), o |= in.host[(i & 32) + l];
               return s ^ m * 3 ^ o * 5;
           });
}
__global__ void special(unsigned *out) {
    unsigned lane, warp, lt, eq;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("mov.u32 %0, %%warpid;" : "=r"(warp));
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
    asm("mov.u32 %0, %%lanemask_ge;" : "=r"(eq));
    int i = threadIdx.x + threadIdx.y * blockDim.x;
    out[i * 4] = lane, out[i * 4 + 1] = lt, out[i * 4 + 2] = eq, out[i * 4 + 3] = warpSize;
}
TEST(special_registers) {
    Array<unsigned> out(96 * 4);
    special<<<1, dim3(12, 8)>>>(out.device);
    if (!finished()) return false;
    return equal(out.down(), [](size_t k) { unsigned l = (unsigned)(k / 4 % 32); return k % 4 == 0 ? l : k % 4 == 1 ? (1u << l) - 1 : k % 4 == 2 ? ~((1u << l) - 1) : 32u; });
}
__global__ void clocks(long long *out) {
    long long a = clock64();
    int b = clock();
    __nanosleep(100);
    out[threadIdx.x] = clock64() - a + 0 * b;
}
TEST(clocks_go_forward) {
    Array<long long> out(32);
    clocks<<<1, 32>>>(out.device);
    if (!finished()) return false;
    for (long long t : out.down()) EXPECT(t > 0);
    return true;
}
__global__ void synchronous_without_barrier(int *out) {
    __shared__ volatile int s[64];
    int t = threadIdx.x;
    s[t] = t;
    s[t + 32] = 0;
    __syncwarp();
    for (int k = 16; k; k >>= 1) {
        int v = s[t + k];
        __syncwarp();
        s[t] += v;
        __syncwarp();
    }
    out[t] = s[0];
}
TEST(warp_synchronous_reduction) {
    Array<int> out(32);
    synchronous_without_barrier<<<1, 32>>>(out.device);
    if (!finished()) return false;
    return equal(out.down(), [](size_t) { return 496; });
}
__global__ void partial_warp(const int *in, int *out, int n) {
    int i = threadIdx.x;
    if (i < n) {
        int s = in[i];
        for (int k = 1; k < n; k++) s = max(s, __shfl_sync((1u << n) - 1, in[i], k));
        out[i] = s;
    } else
        out[i] = -1;
}
TEST(shuffle_among_some_lanes) {
    Array<int> in(32, [](size_t i) { return (int)(noise(i) % 1000); }, 0), out(32);
    partial_warp<<<1, 32>>>(in.device, out.device, 12);
    if (!finished()) return false;
    int m = 0;
    for (int k = 1; k < 12; k++) m = std::max(m, in.host[k]);
    return equal(out.down(), [&](size_t i) { return i < 12 ? std::max(m, in.host[i]) : -1; });
}
