// Instructions that nvcc seldom or never writes by itself, as inline assembly, against what the PTX ISA says they do.
#include "conformance.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

typedef uint32_t u32;
typedef long long s64;
constexpr int N = 256;
static Array<u32> &numbers(int which) {
    static Array<u32> n[3] = {Array<u32>(N, [](size_t i) { return noise(i); }, 0), Array<u32>(N, [](size_t i) { return i % 5 ? noise(i + 999) : noise(i); }, 0),
                              Array<u32>(N, [](size_t i) { return noise(i + 5555) >> i % 30; }, 0)};
    return n[which];
}
// A kernel of one instruction on three numbers, and its comparison with `expected`.
#define ONE(name, text)                                                                                                       \
    __global__ void name(const u32 *a, const u32 *b, const u32 *c, u32 *out) {                                                \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                                                        \
        asm volatile(text : "=r"(out[i]) : "r"(a[i]), "r"(b[i]), "r"(c[i]));                                                  \
    }
template <class F> static bool agrees(void (*kernel)(const u32 *, const u32 *, const u32 *, u32 *), F expected) {
    Array<u32> out(N);
    kernel<<<4, N / 4>>>(numbers(0).device, numbers(1).device, numbers(2).device, out.device);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t i) { return (u32)expected(numbers(0).host[i], numbers(1).host[i], numbers(2).host[i]); });
}
static s64 clamp(s64 x, s64 low, s64 high) { return std::min(std::max(x, low), high); }
static s64 s8(u32 x) { return (int8_t)x; }
static s64 s16(u32 x) { return (int16_t)x; }
static s64 s32(u32 x) { return (int32_t)x; }

ONE(add_bytes, "vadd.s32.u32.s32.sat %0, %1.b0, %2.h1;")
ONE(sub_wide, "vsub.s32.s32.u32.sat %0, %1, %2;")
ONE(difference_merged, "vabsdiff.s32.s32.s32.sat %0.h0, %1.b1, %2.b3, %3;")
ONE(least_added, "vmin.s32.s32.s32.sat.add %0, %1.h0, %2.h1, %3;")
ONE(most_least, "vmax.u32.u32.u32.min %0, %1, %2.b2, %3;")
ONE(set_added, "vset.s32.u32.lt.add %0, %1.h0, %2.h1, %3;")
ONE(shift_clamped, "vshl.u32.u32.u32.sat.clamp %0, %1.h0, %2.b0;")
ONE(shift_wrapped, "vshr.s32.s32.u32.wrap.add %0, %1, %2, %3;")
// ptxas writes these out for GPUs without them: 34 bits of a shifted number are saturated, vmad's c is signed (runtime/video.c).
TEST(scalar_video_instructions) {
    return agrees(add_bytes, [](u32 a, u32 b, u32) { return (a & 255) + s16(b >> 16); }) &
           agrees(sub_wide, [](u32 a, u32 b, u32) { return clamp(s32(a) - (s64)b, INT32_MIN, INT32_MAX); }) &
           agrees(difference_merged, [](u32 a, u32 b, u32 c) { return (c & 0xffff0000u) | (u32)std::abs(s8(a >> 8) - s8(b >> 24)); }) &
           agrees(least_added, [](u32 a, u32 b, u32 c) { return std::min(s16(a), s16(b >> 16)) + s32(c); }) &
           agrees(most_least, [](u32 a, u32 b, u32 c) { return std::min(std::max(a, b >> 16 & 255), c); }) &
           agrees(set_added, [](u32 a, u32 b, u32 c) { return (s16(a) < (s64)(b >> 16) ? 1 : 0) + c; }) &
           agrees(shift_clamped, [](u32 a, u32 b, u32) { return clamp((s64)((uint64_t)(a & 0xffff) << std::min(b & 255, 32u) << 30) >> 30, 0, UINT32_MAX); }) &
           agrees(shift_wrapped, [](u32 a, u32 b, u32 c) { return (s32(a) >> (b & 31)) + s32(c); });
}
ONE(mad_plain, "vmad.s32.s32.s32.shr7 %0, %1.h0, %2.h1, %3;")
ONE(mad_saturated, "vmad.u32.u32.u32.sat %0, %1.h0, %2.h1, %3;")
ONE(mad_plus_one, "vmad.s32.s32.s32.po.shr15 %0, %1.h1, %2.h0, %3;")
ONE(mad_minus, "vmad.s32.s32.s32.sat %0, %1.h0, %2.h1, -%3;")
TEST(video_multiply_and_add) {
    return agrees(mad_plain, [](u32 a, u32 b, u32 c) { return (s16(a) * s16(b >> 16) + s32(c)) >> 7; }) &
           agrees(mad_saturated, [](u32 a, u32 b, u32 c) { return clamp((s64)(a & 0xffff) * (b >> 16) + s32(c), 0, UINT32_MAX); }) &
           agrees(mad_plus_one, [](u32 a, u32 b, u32 c) { return (s16(a >> 16) * s16(b) + s32(c) + 1) >> 15; }) &
           agrees(mad_minus, [](u32 a, u32 b, u32 c) { return clamp(s16(a) * s16(b >> 16) - s32(c), INT32_MIN, INT32_MAX); });
}
// Parts of 8 or 16 bits, one by one.
template <class F> static u32 each(int bits, u32 a, u32 b, F f) {
    u32 r = 0, mask = (1u << bits) - 1;
    for (int at = 0; at < 32; at += bits) r |= ((u32)f(a >> at & mask, b >> at & mask) & mask) << at;
    return r;
}
ONE(add4, "vadd4.u32.u32.u32.sat %0, %1, %2, %3;")
ONE(sub2, "vsub2.s32.s32.s32.sat %0, %1, %2, %3;")
ONE(average4, "vavrg4.s32.s32.s32 %0, %1, %2, %3;")
ONE(difference2, "vabsdiff2.u32.s32.s32.add %0, %1, %2, %3;")
ONE(difference4, "vabsdiff4.s32.s32.s32.add %0, %1, %2, %3;")
ONE(least4_of_some, "vmin4.u32.u32.u32 %0.b20, %1, %2, %3;")
ONE(most2_picked, "vmax2.s32.s32.s32 %0.h1, %1.h01, %2.h32, %3;")
ONE(set4, "vset4.u32.u32.ge.add %0, %1, %2, %3;")
ONE(set2, "vset2.s32.s32.ne %0, %1, %2, %3;")
TEST(simd_video_instructions) {
    return agrees(add4, [](u32 a, u32 b, u32) { return each(8, a, b, [](u32 x, u32 y) { return clamp(x + y, 0, 255); }); }) &&
           agrees(sub2, [](u32 a, u32 b, u32) { return each(16, a, b, [](u32 x, u32 y) { return clamp(s16(x) - s16(y), -32768, 32767); }); }) &&
           agrees(average4, [](u32 a, u32 b, u32) { return each(8, a, b, [](u32 x, u32 y) { s64 s = s8(x) + s8(y); return s >= 0 ? (s + 1) >> 1 : s >> 1; }); }) &&
           agrees(difference2, [](u32 a, u32 b, u32 c) { return c + (u32)std::abs(s16(a) - s16(b)) + (u32)std::abs(s16(a >> 16) - s16(b >> 16)); }) &&
           agrees(difference4, [](u32 a, u32 b, u32 c) { for (int k = 0; k < 32; k += 8) c += (u32)std::abs(s8(a >> k) - s8(b >> k)); return c; }) &&
           agrees(least4_of_some, [](u32 a, u32 b, u32 c) { return (each(8, a, b, [](u32 x, u32 y) { return std::min(x, y); }) & 0x00ff00ffu) | (c & 0xff00ff00u); }) &&
           agrees(most2_picked, [](u32 a, u32 b, u32 c) { return (u32)std::max(s16(a), s16(b >> 16)) << 16 | (c & 0xffffu); }) &&
           agrees(set4, [](u32 a, u32 b, u32 c) { for (int k = 0; k < 32; k += 8) c += (a >> k & 255) >= (b >> k & 255); return c; }) &&
           agrees(set2, [](u32 a, u32 b, u32) { return each(16, a, b, [](u32 x, u32 y) { return x != y; }); });
}

ONE(nth_set, "{ .reg .s32 o; .reg .u32 m; and.b32 m, %2, 31; and.b32 o, %3, 7; sub.s32 o, o, 4; fns.b32 %0, %1, m, o; }")
TEST(find_the_nth_set_bit) {
    return agrees(nth_set, [](u32 mask, u32 b, u32 c) {
        int at = (int)(b & 31), offset = (int)(c & 7) - 4, step = offset > 0 ? 1 : -1, left = std::abs(offset);
        if (offset == 0) return mask >> at & 1 ? (u32)at : ~0u;
        for (; at >= 0 && at < 32; at += step)
            if (mask >> at & 1 && --left == 0) return (u32)at;
        return ~0u;
    });
}
#define PACK(name, type, more) ONE(name, "{ .reg .s32 x, y; shr.s32 x, %1, 22; shr.s32 y, %2, 20; cvt.pack.sat." type ".s32" more " }")
PACK(pack_u16, "u16", " %0, x, %2;")
PACK(pack_s16, "s16", " %0, %1, y;")
PACK(pack_u8, "u8", ".b32 %0, x, y, %3;")
PACK(pack_s8, "s8", ".b32 %0, x, y, %3;")
PACK(pack_s4, "s4", ".b32 %0, x, y, %3;")
PACK(pack_u2, "u2", ".b32 %0, x, y, %3;")
TEST(packs_of_clamped_integers) {
    auto pack = [](int bits, s64 low, s64 high, s64 x, s64 y, u32 c) {
        u32 mask = bits == 32 ? ~0u : (1u << bits) - 1;
        return (bits < 16 ? c << 2 * bits : 0) | ((u32)clamp(x, low, high) & mask) << bits | ((u32)clamp(y, low, high) & mask);
    };
    return agrees(pack_u16, [&](u32 a, u32 b, u32 c) { return pack(16, 0, 65535, s32(a) >> 22, s32(b), c); }) &&
           agrees(pack_s16, [&](u32 a, u32 b, u32 c) { return pack(16, -32768, 32767, s32(a), s32(b) >> 20, c); }) &&
           agrees(pack_u8, [&](u32 a, u32 b, u32 c) { return pack(8, 0, 255, s32(a) >> 22, s32(b) >> 20, c); }) &&
           agrees(pack_s8, [&](u32 a, u32 b, u32 c) { return pack(8, -128, 127, s32(a) >> 22, s32(b) >> 20, c); }) &&
           agrees(pack_s4, [&](u32 a, u32 b, u32 c) { return pack(4, -8, 7, s32(a) >> 22, s32(b) >> 20, c); }) &&
           agrees(pack_u2, [&](u32 a, u32 b, u32 c) { return pack(2, 0, 3, s32(a) >> 22, s32(b) >> 20, c); });
}
ONE(permute_f4e, "prmt.b32.f4e %0, %1, %2, %3;")
ONE(permute_b4e, "prmt.b32.b4e %0, %1, %2, %3;")
ONE(permute_rc8, "prmt.b32.rc8 %0, %1, %2, %3;")
ONE(permute_ecl, "prmt.b32.ecl %0, %1, %2, %3;")
ONE(permute_ecr, "prmt.b32.ecr %0, %1, %2, %3;")
ONE(permute_rc16, "prmt.b32.rc16 %0, %1, %2, %3;")
TEST(permute_in_all_modes) {
    auto pick = [](u32 a, u32 b, u32 c, auto which) {
        uint64_t both = (uint64_t)b << 32 | a;
        u32 r = 0;
        for (int i = 0; i < 4; i++) r |= (u32)(both >> 8 * (which(i, (int)(c & 3)) & 7) & 255) << 8 * i;
        return r;
    };
    return agrees(permute_f4e, [&](u32 a, u32 b, u32 c) { return pick(a, b, c, [](int i, int n) { return n + i; }); }) &&
           agrees(permute_b4e, [&](u32 a, u32 b, u32 c) { return pick(a, b, c, [](int i, int n) { return n - i + 8; }); }) &&
           agrees(permute_rc8, [&](u32 a, u32 b, u32 c) { return pick(a, b, c, [](int, int n) { return n; }); }) &&
           agrees(permute_ecl, [&](u32 a, u32 b, u32 c) { return pick(a, b, c, [](int i, int n) { return std::max(i, n); }); }) &&
           agrees(permute_ecr, [&](u32 a, u32 b, u32 c) { return pick(a, b, c, [](int i, int n) { return std::min(i, n); }); }) &&
           agrees(permute_rc16, [&](u32 a, u32 b, u32 c) { return pick(a, b, c, [](int i, int n) { return (n & 1) * 2 + (i & 1); }); });
}
ONE(logic_and_predicate, "{ .reg .pred p, q; .reg .b32 d, s; setp.lt.u32 q, %1, %2; lop3.or.b32 d|p, %1, %2, %3, 0x80, q; selp.u32 s, 7, 0, p; add.u32 %0, d, s; }")
ONE(predicate_of_logic, "{ .reg .pred p, q; setp.lt.u32 q, %3, 1000; lop3.and.b32 _|p, %1, %2, %3, 0x80, q; selp.u32 %0, 7, 0, p; }")
TEST(three_way_logic_with_a_predicate) {
    return agrees(logic_and_predicate, [](u32 a, u32 b, u32 c) { return (a & b & c) + ((a & b & c) || a < b ? 7 : 0); }) &&
           agrees(predicate_of_logic, [](u32 a, u32 b, u32 c) { return (a & b & c) && c < 1000 ? 7 : 0; });
}
ONE(sign_extended, "szext.wrap.s32 %0, %1, %3;")
ONE(zero_extended, "szext.clamp.u32 %0, %1, %3;")
ONE(bit_mask, "{ .reg .b32 n; and.b32 n, %3, 63; bmsk.clamp.b32 %0, n, %2; }")
TEST(extensions_and_bit_masks) {
    return agrees(sign_extended, [](u32 a, u32, u32 c) { c &= 31; return c ? (u32)((int)(a << (32 - c)) >> (32 - c)) : 0u; }) &&
           agrees(zero_extended, [](u32 a, u32, u32 c) { return c >= 32 ? a : a & ((1u << c) - 1); }) &&
           agrees(bit_mask, [](u32, u32 b, u32 c) {
               u32 r = 0, first = c & 63;
               for (u32 k = 0; k < 32; k++)
                   if (k >= first && k - first < b) r |= 1u << k;
               return r;
           });
}

// Cache policies and eviction priorities change no result.
__global__ void policies(const float4 *in, float4 *out) {
    int i = threadIdx.x;
    unsigned long long keep, drop;
    float4 v;
    asm volatile("createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %0, 0.5;" : "=l"(keep));
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(drop));
    asm volatile("ld.global.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(in + i), "l"(keep));
    asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(in + i));
    asm volatile("st.global.L1::no_allocate.L2::cache_hint.v4.f32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(out + i), "f"(v.y), "f"(v.x), "f"(v.w), "f"(v.z), "l"(drop) : "memory");
    if (i % 8 == 0) asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(out + i));
}
TEST(cache_policies) {
    Array<float4> in(32, [](size_t i) { return make_float4((float)i, 1, 2, 3); }, 0), out(32);
    policies<<<1, 32>>>(in.device, out.device);
    if (!finished()) return false;
    for (size_t i = 0; i < 32; i++) EXPECT(out.down()[i].x == 1 && out.host[i].y == (float)i && out.host[i].z == 3 && out.host[i].w == 2);
    return true;
}
// Arrays on the stack whose length is known at run time only.
__global__ void stack(const int *length, int *out) {
    int i = threadIdx.x, n = length[i], sum = 0;
    for (int round = 0; round < 3; round++) {
        int *a = (int *)alloca((size_t)n * 4);
        for (int k = 0; k < n; k++) a[k] = i * k + round;
        for (int k = n; k--;) sum += a[k] * (k + 1);
    }
    out[i] = sum;
}
__global__ void saved_stack(const int *length, int *out) {
    int i = threadIdx.x, sum = 0;
    for (int round = 0; round < 200; round++) {
        unsigned long long top, at;
        asm volatile("stacksave.u64 %0;" : "=l"(top));
        asm volatile("alloca.u64 %0, %1, 16;" : "=l"(at) : "l"(64ull + 16 * (unsigned)length[0]));
        asm volatile("st.local.u32 [%0+8], %1;" ::"l"(at), "r"(round + i) : "memory");
        int back;
        asm volatile("ld.local.u32 %0, [%1+8];" : "=r"(back) : "l"(at) : "memory");
        sum += back;
        asm volatile("stackrestore.u64 %0;" ::"l"(top));
    }
    out[i] = sum;
}
TEST(arrays_of_variable_length_on_the_stack) {
    Array<int> length(64, [](size_t i) { return (int)(1 + noise(i) % 20); }, 0), out(64), saved(32);
    stack<<<1, 64>>>(length.device, out.device);
    if (!finished()) return false;
    saved_stack<<<1, 32>>>(length.device, saved.device);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t i) {
        int sum = 0;
        for (int round = 0; round < 3; round++)
            for (int k = 0; k < length.host[i]; k++) sum += ((int)i * k + round) * (k + 1);
        return sum;
    }) && equal(saved.down(), [](size_t i) { return 199 * 100 + 200 * (int)i; });
}
// Tiles of several warps keep their barriers in the shared memory that is reserved for the system.
__global__ void large_tiles(const int *in, int *out) {
    __shared__ cg::block_tile_memory<256> memory;
    auto block = cg::this_thread_block(memory);
    auto half = cg::tiled_partition<128>(block);
    auto pair = cg::tiled_partition<64>(block);
    int i = threadIdx.x, v = in[i];
    __shared__ int s[256];
    s[i] = v;
    pair.sync();
    int other = s[i ^ 32];
    half.sync();
    s[i] = v * 2;
    half.sync();
    out[i] = other + s[i ^ 64];
    out[256 + i] = cg::reduce(half, v, cg::plus<int>());
    out[512 + i] = cg::reduce(pair, v, cg::greater<int>()) + (int)pair.any(v == 7) + half.shfl(v, 77);
}
TEST(tiles_of_several_warps) {
    Array<int> in(256, [](size_t i) { return (int)(noise(i) % 300); }, 0), out(768);
    for (int round = 0; round < 2; round++) {
        large_tiles<<<3, 256>>>(in.device, out.device);
        if (!finished()) return false;
    }
    return equal(out.down(), [&](size_t k) {
        size_t i = k % 256;
        int sum = 0, most = INT32_MIN, seven = 0;
        for (size_t j = i & ~127u; j < (i & ~127u) + 128; j++) sum += in.host[j];
        for (size_t j = i & ~63u; j < (i & ~63u) + 64; j++) most = std::max(most, in.host[j]), seven |= in.host[j] == 7;
        return k < 256 ? in.host[i ^ 32] + 2 * in.host[i ^ 64] : k < 512 ? sum : most + seven + in.host[(i & ~127u) + 77];
    });
}
