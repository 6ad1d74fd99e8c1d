// What generated programs compute with. Every operation exists twice: as the device has it (an intrinsic, or one PTX
// instruction), and as a model on the host, in plain integer arithmetic or with the host's rounding mode. Lines that
// start with OP, ROUNDED, SIMD and the like are read by catalogue.py, which learns names and types from them.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cfenv>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;

#define HD __host__ __device__
#define OP HD inline
#ifdef __CUDA_ARCH__
#define BOTH(device, host) (device)
#else
#define BOTH(device, host) (host)
#endif

// ---- one PTX instruction ------------------------------------------------------------------------------------------
#ifdef __CUDA_ARCH__
#define PTX1(T, R, A, text) do { T d_; asm(text " %0, %1;" : "=" R(d_) : A(a)); return d_; } while (0)
#define PTX2(T, R, A, B, text) do { T d_; asm(text " %0, %1, %2;" : "=" R(d_) : A(a), B(b)); return d_; } while (0)
#define PTX3(T, R, A, B, C, text) do { T d_; asm(text " %0, %1, %2, %3;" : "=" R(d_) : A(a), B(b), C(c)); return d_; } while (0)
#define PTX4(T, R, A, B, C, D, text) do { T d_; asm(text " %0, %1, %2, %3, %4;" : "=" R(d_) : A(a), B(b), C(c), D(d)); return d_; } while (0)
#else
#define PTX1(...)
#define PTX2(...)
#define PTX3(...)
#define PTX4(...)
#endif

// ---- integers of any width: arithmetic wraps around, as unsigned numbers do -------------------------------------------
template <class T> using Wide = typename std::conditional<sizeof(T) == 8, u64, u32>::type;
template <class T> HD constexpr bool is_signed_() { return T(-1) < T(0); }
template <class T, class F> HD inline T to(F x) { return T(x); }
template <class T> HD inline T add(T a, T b) { return T(Wide<T>(a) + Wide<T>(b)); }
template <class T> HD inline T sub(T a, T b) { return T(Wide<T>(a) - Wide<T>(b)); }
template <class T> HD inline T mul(T a, T b) { return T(Wide<T>(a) * Wide<T>(b)); }
template <class T> HD inline bool divides(T a, T b) { return b != 0 && !(is_signed_<T>() && b == T(-1)); }
template <class T> HD inline T quotient(T a, T b) { return divides(a, b) ? T(a / b) : a; }
template <class T> HD inline T remainder_(T a, T b) { return divides(a, b) ? T(a % b) : b; }
template <class T> HD inline T both_bits(T a, T b) { return T(a & b); }
template <class T> HD inline T any_bits(T a, T b) { return T(a | b); }
template <class T> HD inline T odd_bits(T a, T b) { return T(a ^ b); }
template <class T> HD inline T left(T a, T n) { return T(Wide<T>(a) << (u32(n) & (sizeof(T) * 8 - 1))); }
template <class T> HD inline T right(T a, T n) { return T(a >> (u32(n) & (sizeof(T) * 8 - 1))); }
template <class T> HD inline T smaller(T a, T b) { return a < b ? a : b; }
template <class T> HD inline T larger(T a, T b) { return a > b ? a : b; }
template <class T> HD inline T complement(T a) { return T(~a); }
// ptxas computes the negative of a 16-bit number in 32 bits, so that -(-32768) is 32768 for a wider type that takes it.
// Nobody asks for that; the 1 is there because a select between two equal values would be folded.
template <class T> HD inline bool has_negative(T a) { return sizeof(T) != 2 || !is_signed_<T>() || a != T(-32768); }
template <class T> HD inline T negative(T a) { return has_negative(a) ? T(Wide<T>(0) - Wide<T>(a)) : T(1); }
template <class T> HD inline T magnitude(T a) { return a < T(0) ? negative(a) : a; }

// ---- bits -------------------------------------------------------------------------------------------------------------
inline u32 reversed(u32 a) {
    u32 r = 0;
    for (int i = 0; i < 32; i++) r |= (a >> i & 1) << (31 - i);
    return r;
}
inline u32 permuted(u32 a, u32 b, u32 s) {
    u64 bytes = u64(b) << 32 | a;
    u32 r = 0;
    for (int i = 0; i < 4; i++) r |= u32(bytes >> 8 * (s >> 4 * i & 7) & 255) << 8 * i;
    return r;
}
// Where a field begins, and its length: 8 bits of each count; but with 64-bit values an H200 took all, PTX allowing neither.
template <class T> u32 count_of(u32 n) { return sizeof(T) == 8 ? (n > 64 ? 64 : n) : n & 255; }
template <class T> T field(T a, u32 p, u32 n) {  // PTX bfe
    const int bits = sizeof(T) * 8;
    p = count_of<T>(p), n = count_of<T>(n);
    T r = 0;
    bool sign = is_signed_<T>() && n != 0 && (a >> (p + n - 1 > bits - 1 ? bits - 1 : p + n - 1) & 1);
    for (u32 i = 0; i < bits; i++) {
        bool bit = i < n && p + i < bits ? a >> (p + i) & 1 : sign;
        if (bit) r |= T(Wide<T>(1) << i);
    }
    return r;
}
template <class T> T inserted(T a, T b, u32 p, u32 n) {  // PTX bfi
    p = count_of<T>(p), n = count_of<T>(n);
    for (u32 i = 0; i < n && p + i < sizeof(T) * 8; i++) b = T((b & ~(T(1) << (p + i))) | ((a >> i & 1) << (p + i)));
    return b;
}
template <class T> u32 highest(T a) {  // PTX bfind
    if (is_signed_<T>() && a < 0) a = T(~a);
    for (int i = sizeof(T) * 8 - 1; i >= 0; i--)
        if (a >> i & 1) return i;
    return ~0u;
}
template <class T> s32 dot4(u32 a, u32 b, u32 c) {
    for (int i = 0; i < 4; i++) c += u32(s32(T(a >> 8 * i))) * u32(s32(T(b >> 8 * i)));
    return c;
}
template <class A, class B> u32 dot2(u32 a, u32 b, u32 c, int first) {
    for (int i = 0; i < 2; i++) c += u32(s32(A(a >> 16 * i))) * u32(s32(B(b >> 8 * (i + first))));
    return c;
}
template <class T> T limited(s64 x, s64 low, s64 high) { return T(x < low ? low : x > high ? high : x); }
template <class T> u32 lookup3(T a, T b, T c, u32 table) {
    u32 r = 0;
    for (int i = 0; i < 32; i++) r |= (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i;
    return r;
}
OP u32 brev(u32 a) { return BOTH(__brev(a), reversed(a)); }
OP u64 brevll(u64 a) { return BOTH(__brevll(a), u64(reversed(u32(a))) << 32 | reversed(u32(a >> 32))); }
OP s32 clz(s32 a) { return BOTH(__clz(a), a ? __builtin_clz(a) : 32); }
OP s32 clzll(s64 a) { return BOTH(__clzll(a), a ? __builtin_clzll(a) : 64); }
OP s32 ffs_(s32 a) { return BOTH(__ffs(a), __builtin_ffs(a)); }
OP s32 ffsll_(s64 a) { return BOTH(__ffsll(a), __builtin_ffsll(a)); }
OP s32 popc(u32 a) { return BOTH(__popc(a), __builtin_popcount(a)); }
OP s32 popcll(u64 a) { return BOTH(__popcll(a), __builtin_popcountll(a)); }
OP u32 byte_perm(u32 a, u32 b, u32 c) { return BOTH(__byte_perm(a, b, c), permuted(a, b, c)); }
OP u32 prmt(u32 a, u32 b, u32 c) {
    PTX3(u32, "r", "r", "r", "r", "prmt.b32");
    u32 r = permuted(a, b, c);
    for (int i = 0; i < 4; i++)
        if (c >> (4 * i + 3) & 1) r = (r & ~(255u << 8 * i)) | (r >> (8 * i + 7) & 1 ? 255u << 8 * i : 0);
    return r;
}
OP u32 sad(s32 a, s32 b, u32 c) { return BOTH(__sad(a, b, c), u32(std::llabs(s64(a) - b)) + c); }
OP u32 usad(u32 a, u32 b, u32 c) { return BOTH(__usad(a, b, c), u32(std::llabs(s64(a) - s64(b))) + c); }
OP s32 mulhi(s32 a, s32 b) { return BOTH(__mulhi(a, b), s32(s64(a) * b >> 32)); }
OP u32 umulhi(u32 a, u32 b) { return BOTH(__umulhi(a, b), u32(u64(a) * b >> 32)); }
OP s64 mul64hi(s64 a, s64 b) { return BOTH(__mul64hi(a, b), s64((__int128)a * b >> 64)); }
OP u64 umul64hi(u64 a, u64 b) { return BOTH(__umul64hi(a, b), u64((unsigned __int128)a * b >> 64)); }
// nvcc takes it that a signed product of 24 bits fits into 32 (a square is never negative), so that it had better fit.
OP s32 mul24(s32 a, s32 b) { b &= 127; return BOTH(__mul24(a, b), (s32(u32(a) << 8) >> 8) * b); }
OP u32 umul24(u32 a, u32 b) { return BOTH(__umul24(a, b), u32(u64(a & 0xffffff) * (b & 0xffffff))); }
OP u32 mul24hi(u32 a, u32 b) { PTX2(u32, "r", "r", "r", "mul24.hi.u32"); return u32(u64(a & 0xffffff) * (b & 0xffffff) >> 16); }
OP s32 hadd(s32 a, s32 b) { return BOTH(__hadd(a, b), s32((s64(a) + b) >> 1)); }
OP s32 rhadd(s32 a, s32 b) { return BOTH(__rhadd(a, b), s32((s64(a) + b + 1) >> 1)); }
OP u32 uhadd(u32 a, u32 b) { return BOTH(__uhadd(a, b), u32((u64(a) + b) >> 1)); }
OP u32 urhadd(u32 a, u32 b) { return BOTH(__urhadd(a, b), u32((u64(a) + b + 1) >> 1)); }
OP u32 funnel_l(u32 a, u32 b, u32 c) { return BOTH(__funnelshift_l(a, b, c), u32((u64(b) << 32 | a) << (c & 31) >> 32)); }
OP u32 funnel_r(u32 a, u32 b, u32 c) { return BOTH(__funnelshift_r(a, b, c), u32((u64(b) << 32 | a) >> (c & 31))); }
OP u32 funnel_lc(u32 a, u32 b, u32 c) { return BOTH(__funnelshift_lc(a, b, c), c >= 32 ? a : u32((u64(b) << 32 | a) << c >> 32)); }
OP u32 funnel_rc(u32 a, u32 b, u32 c) { return BOTH(__funnelshift_rc(a, b, c), c >= 32 ? b : u32((u64(b) << 32 | a) >> c)); }
OP s32 dp4a(s32 a, s32 b, s32 c) { return BOTH(__dp4a(a, b, c), dot4<s8>(a, b, c)); }
OP u32 udp4a(u32 a, u32 b, u32 c) { return BOTH(__dp4a(a, b, c), u32(dot4<u8>(a, b, c))); }
OP s32 dp2a_lo(s32 a, s32 b, s32 c) { return BOTH(__dp2a_lo(a, b, c), s32(dot2<s16, s8>(a, b, c, 0))); }
OP u32 udp2a_hi(u32 a, u32 b, u32 c) { return BOTH(__dp2a_hi(a, b, c), (dot2<u16, u8>(a, b, c, 2))); }
OP u32 bfe_u32(u32 a, u32 b, u32 c) { PTX3(u32, "r", "r", "r", "r", "bfe.u32"); return field<u32>(a, b, c); }
OP s32 bfe_s32(s32 a, u32 b, u32 c) { PTX3(s32, "r", "r", "r", "r", "bfe.s32"); return field<s32>(a, b, c); }
OP u64 bfe_u64(u64 a, u32 b, u32 c) { PTX3(u64, "l", "l", "r", "r", "bfe.u64"); return field<u64>(a, b, c); }
OP s64 bfe_s64(s64 a, u32 b, u32 c) { PTX3(s64, "l", "l", "r", "r", "bfe.s64"); return field<s64>(a, b, c); }
OP u32 bfi_b32(u32 a, u32 b, u32 c, u32 d) { PTX4(u32, "r", "r", "r", "r", "r", "bfi.b32"); return inserted<u32>(a, b, c, d); }
OP u64 bfi_b64(u64 a, u64 b, u32 c, u32 d) { PTX4(u64, "l", "l", "l", "r", "r", "bfi.b64"); return inserted<u64>(a, b, c, d); }
OP u32 bfind_u32(u32 a) { PTX1(u32, "r", "r", "bfind.u32"); return highest(a); }
OP u32 bfind_s32(s32 a) { PTX1(u32, "r", "r", "bfind.s32"); return highest(a); }
OP u32 bfind_u64(u64 a) { PTX1(u32, "r", "l", "bfind.u64"); return highest(a); }
OP u32 bfind_s64(s64 a) { PTX1(u32, "r", "l", "bfind.s64"); return highest(a); }
OP u32 bfind_shift(s32 a) { PTX1(u32, "r", "r", "bfind.shiftamt.s32"); return highest(a) == ~0u ? ~0u : 31 - highest(a); }
OP u32 shl_b32(u32 a, u32 b) { PTX2(u32, "r", "r", "r", "shl.b32"); return b > 31 ? 0 : a << b; }
OP u64 shl_b64(u64 a, u32 b) { PTX2(u64, "l", "l", "r", "shl.b64"); return b > 63 ? 0 : a << b; }
OP u32 shr_u32(u32 a, u32 b) { PTX2(u32, "r", "r", "r", "shr.u32"); return b > 31 ? 0 : a >> b; }
OP s32 shr_s32(s32 a, u32 b) { PTX2(s32, "r", "r", "r", "shr.s32"); return a >> (b > 31 ? 31 : b); }
OP u64 shr_u64(u64 a, u32 b) { PTX2(u64, "l", "l", "r", "shr.u64"); return b > 63 ? 0 : a >> b; }
OP s64 shr_s64(s64 a, u32 b) { PTX2(s64, "l", "l", "r", "shr.s64"); return a >> (b > 63 ? 63 : b); }
OP u16 shl_b16(u16 a, u32 b) { PTX2(u16, "h", "h", "r", "shl.b16"); return b > 15 ? 0 : a << b; }
OP s16 shr_s16(s16 a, u32 b) { PTX2(s16, "h", "h", "r", "shr.s16"); return a >> (b > 15 ? 15 : b); }
OP u16 shr_u16(u16 a, u32 b) { PTX2(u16, "h", "h", "r", "shr.u16"); return b > 15 ? 0 : a >> b; }
OP s16 div_s16(s16 a, s16 b) { if (b == 0 || b == -1) return a; PTX2(s16, "h", "h", "h", "div.s16"); return a / b; }
OP u16 rem_u16(u16 a, u16 b) { if (b == 0) return a; PTX2(u16, "h", "h", "h", "rem.u16"); return a % b; }
OP s16 mulhi_s16(s16 a, s16 b) { PTX2(s16, "h", "h", "h", "mul.hi.s16"); return a * b >> 16; }
OP u16 mulhi_u16(u16 a, u16 b) { PTX2(u16, "h", "h", "h", "mul.hi.u16"); return u32(a) * b >> 16; }
OP s32 mulwide_s16(s16 a, s16 b) { PTX2(s32, "r", "h", "h", "mul.wide.s16"); return a * b; }
OP u32 mulwide_u16(u16 a, u16 b) { PTX2(u32, "r", "h", "h", "mul.wide.u16"); return u32(a) * b; }
OP s32 madwide_s16(s16 a, s16 b, s32 c) { PTX3(s32, "r", "h", "h", "r", "mad.wide.s16"); return u32(a * b) + u32(c); }
OP s16 madlo_s16(s16 a, s16 b, s16 c) { PTX3(s16, "h", "h", "h", "h", "mad.lo.s16"); return s16(a * b + c); }
OP u16 madhi_u16(u16 a, u16 b, u16 c) { PTX3(u16, "h", "h", "h", "h", "mad.hi.u16"); return u16((u32(a) * b >> 16) + c); }
OP s32 madhi_s32(s32 a, s32 b, s32 c) { PTX3(s32, "r", "r", "r", "r", "mad.hi.s32"); return u32(s64(a) * b >> 32) + u32(c); }
OP u64 madhi_u64(u64 a, u64 b, u64 c) { PTX3(u64, "l", "l", "l", "l", "mad.hi.u64"); return u64((unsigned __int128)a * b >> 64) + c; }
OP u64 madwide_u32(u32 a, u32 b, u64 c) { PTX3(u64, "l", "r", "r", "l", "mad.wide.u32"); return u64(a) * b + c; }
OP s64 madwide_s32(s32 a, s32 b, s64 c) { PTX3(s64, "l", "r", "r", "l", "mad.wide.s32"); return u64(s64(a) * b) + u64(c); }
OP s32 madhisat(s32 a, s32 b, s32 c) { PTX3(s32, "r", "r", "r", "r", "mad.hi.sat.s32"); return limited<s32>((s64(a) * b >> 32) + c, INT_MIN, INT_MAX); }
OP s32 addsat(s32 a, s32 b) { PTX2(s32, "r", "r", "r", "add.sat.s32"); return limited<s32>(s64(a) + b, INT_MIN, INT_MAX); }
OP s32 subsat(s32 a, s32 b) { PTX2(s32, "r", "r", "r", "sub.sat.s32"); return limited<s32>(s64(a) - b, INT_MIN, INT_MAX); }
OP s32 abs_s32(s32 a) { PTX1(s32, "r", "r", "abs.s32"); return magnitude(a); }
OP s64 abs_s64(s64 a) { PTX1(s64, "l", "l", "abs.s64"); return magnitude(a); }
OP s16 abs_s16(s16 a) { if (!has_negative(a)) return 1; PTX1(s16, "h", "h", "abs.s16"); return magnitude(a); }
OP s16 neg_s16(s16 a) { if (!has_negative(a)) return 1; PTX1(s16, "h", "h", "neg.s16"); return negative(a); }
OP s16 min_s16(s16 a, s16 b) { PTX2(s16, "h", "h", "h", "min.s16"); return a < b ? a : b; }
OP u16 max_u16(u16 a, u16 b) { PTX2(u16, "h", "h", "h", "max.u16"); return a > b ? a : b; }
OP u16 not_b16(u16 a) { PTX1(u16, "h", "h", "not.b16"); return ~a; }
OP u16 cnot_b16(u16 a) { PTX1(u16, "h", "h", "cnot.b16"); return a == 0; }
OP u32 cnot_b32(u32 a) { PTX1(u32, "r", "r", "cnot.b32"); return a == 0; }
OP u64 cnot_b64(u64 a) { PTX1(u64, "l", "l", "cnot.b64"); return a == 0; }
OP u64 min_u64(u64 a, u64 b) { PTX2(u64, "l", "l", "l", "min.u64"); return a < b ? a : b; }
OP s64 max_s64(s64 a, s64 b) { PTX2(s64, "l", "l", "l", "max.s64"); return a > b ? a : b; }
OP u64 sad_u64(u64 a, u64 b, u64 c) { PTX3(u64, "l", "l", "l", "l", "sad.u64"); return (a > b ? a - b : b - a) + c; }
OP u16 sad_s16(s16 a, s16 b, u16 c) { PTX3(u16, "h", "h", "h", "h", "sad.s16"); return u16(std::abs(a - b) + c); }
OP u32 sltc(u32 a, u32 b, s32 c) { PTX3(u32, "r", "r", "r", "r", "slct.u32.s32"); return c >= 0 ? a : b; }
OP f32 slct_f(f32 a, f32 b, f32 c) { PTX3(f32, "f", "f", "f", "f", "slct.f32.f32"); return c >= 0 ? a : b; }
OP u32 set_lt(s32 a, s32 b) { PTX2(u32, "r", "r", "r", "set.lt.u32.s32"); return a < b ? ~0u : 0; }
OP f32 set_ge(u32 a, u32 b) { PTX2(f32, "f", "r", "r", "set.ge.f32.u32"); return a >= b ? 1 : 0; }
OP u32 set_gtu(f32 a, f32 b) { PTX2(u32, "r", "f", "f", "set.gtu.u32.f32"); return !(a <= b) ? ~0u : 0; }
OP u32 set_num(f64 a, f64 b) { PTX2(u32, "r", "d", "d", "set.num.u32.f64"); return a == a && b == b ? ~0u : 0; }
OP u32 set_equ(f64 a, f64 b) { PTX2(u32, "r", "d", "d", "set.equ.u32.f64"); return !(a < b || a > b) ? ~0u : 0; }
OP u32 bmsk_wrap(u32 a, u32 b) { PTX2(u32, "r", "r", "r", "bmsk.wrap.b32"); a &= 31, b &= 31; return u32(((u64(1) << b) - 1) << a); }
OP u32 bmsk_clamp(u32 a, u32 b) { PTX2(u32, "r", "r", "r", "bmsk.clamp.b32"); return a > 31 ? 0 : u32(((b > 31 ? u64(1) << 32 : u64(1) << b) - 1) << a); }
OP s32 szext_clamp(s32 a, u32 b) { PTX2(s32, "r", "r", "r", "szext.clamp.s32"); return b == 0 ? 0 : b > 31 ? a : s32(u32(a) << (32 - b)) >> (32 - b); }
OP u32 szext_wrap(u32 a, u32 b) { PTX2(u32, "r", "r", "r", "szext.wrap.u32"); b &= 31; return b == 0 ? 0 : a << (32 - b) >> (32 - b); }
OP u32 lop3_6b(u32 a, u32 b, u32 c) {
#ifdef __CUDA_ARCH__
    u32 d;
    asm("lop3.b32 %0, %1, %2, %3, 0x6b;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
#else
    return lookup3(a, b, c, 0x6b);
#endif
}
OP u64 pair(u32 a, u32 b) { return BOTH(u64(__double_as_longlong(__hiloint2double(s32(b), s32(a)))), u64(b) << 32 | a); }
OP u32 carries(u32 a, u32 b, u32 c) {  // high word of {a, b} + {c, a} + …, by carry flags
#ifdef __CUDA_ARCH__
    u32 x, y, z;
    asm("add.cc.u32 %0, %3, %4;\n addc.cc.u32 %1, %4, %5;\n addc.u32 %2, %3, %5;\n sub.cc.u32 %0, %0, %5;\n subc.cc.u32 %1, %1, %3;\n subc.u32 %2, %2, 0;\n"
        "mad.lo.cc.u32 %0, %3, %4, %0;\n madc.hi.cc.u32 %1, %3, %4, %1;\n madc.lo.u32 %2, %5, %4, %2;" : "=&r"(x), "=&r"(y), "=&r"(z) : "r"(a), "r"(b), "r"(c));
    return x ^ y * 3 ^ z * 5;
#else
    unsigned __int128 mask = ((unsigned __int128)1 << 96) - 1;
    unsigned __int128 v = ((unsigned __int128)a << 64 | u64(b) << 32 | a) + ((unsigned __int128)c << 64 | u64(c) << 32 | b);
    v = (v - (u64(a) << 32 | c)) & mask;
    v += u64(a) * b;
    v += (unsigned __int128)(c * b) << 64;
    return u32(v) ^ u32(v >> 32) * 3 ^ u32(v >> 64) * 5;
#endif
}
OP u64 product128(u64 a, u64 b, u64 c) { unsigned __int128 p = (unsigned __int128)a * b + c; return u64(p) ^ u64(p >> 64) * 7; }
OP s64 product128s(s64 a, s64 b, s64 c) { __int128 p = (__int128)a * b - c; return s64(u64(p >> 37) ^ u64(p >> 101)); }
OP u64 shift128(u64 a, u64 b, u32 c) { unsigned __int128 p = (unsigned __int128)a << 64 | b; return u64(p >> (c & 127)) ^ u64(p << (c >> 8 & 127) >> 64); }
OP u64 divide128(u64 a, u64 b, u64 c) { unsigned __int128 p = (unsigned __int128)a << 64 | b; return u64(p / (c | 1)) ^ u64(p % (c | 1)); }

// ---- SIMD in a word: NAME2 works on halfwords, NAME4 on bytes. S and U are a half's or byte's signed and unsigned
// type, in x, y and ux, uy. ---------------------------------------------------------------------------------------------
template <class U, class F> u32 each(u32 a, u32 b, F f) {
    typedef typename std::make_signed<U>::type S;
    const int bits = sizeof(U) * 8;
    u32 r = 0;
    for (int i = 0; i < 32; i += bits) r |= u32(U(f(s32(S(a >> i)), s32(S(b >> i)), s32(U(a >> i)), s32(U(b >> i)), (1 << bits) - 1))) << i;
    return r;
}
inline s32 held(s32 x, s32 top) { return limited<s32>(x, -(top / 2) - 1, top / 2); }  // saturated, signed
#define SIMD(name, result)                                                                                                  \
    OP u32 name##2_(u32 a, u32 b) { return BOTH(__##name##2(a, b), each<u16>(a, b, [](s32 x, s32 y, s32 ux, s32 uy, s32 top) { return result; })); } \
    OP u32 name##4_(u32 a, u32 b) { return BOTH(__##name##4(a, b), each<u8>(a, b, [](s32 x, s32 y, s32 ux, s32 uy, s32 top) { return result; })); }
#define SIMD1(name, result)                                                                                                 \
    OP u32 name##2_(u32 a) { return BOTH(__##name##2(a), each<u16>(a, a, [](s32 x, s32, s32, s32, s32 top) { return result; })); } \
    OP u32 name##4_(u32 a) { return BOTH(__##name##4(a), each<u8>(a, a, [](s32 x, s32, s32, s32, s32 top) { return result; })); }
SIMD(vadd, x + y)
SIMD(vaddss, held(x + y, top))
SIMD(vaddus, limited<s32>(ux + uy, 0, top))
SIMD(vsub, x - y)
SIMD(vsubss, held(x - y, top))
SIMD(vsubus, limited<s32>(ux - uy, 0, top))
SIMD(vavgu, (ux + uy + 1) >> 1)
SIMD(vhaddu, (ux + uy) >> 1)
SIMD(vabsdiffu, std::abs(ux - uy))
SIMD(vabsdiffs, std::abs(x - y))
SIMD(vmaxs, x > y ? x : y)
SIMD(vmaxu, ux > uy ? ux : uy)
SIMD(vmins, x < y ? x : y)
SIMD(vminu, ux < uy ? ux : uy)
SIMD(vcmpeq, x == y ? top : 0)
SIMD(vcmpges, x >= y ? top : 0)
SIMD(vcmpgtu, ux > uy ? top : 0)
SIMD(vcmplts, x < y ? top : 0)
SIMD(vcmpleu, ux <= uy ? top : 0)
SIMD(vcmpne, x != y ? top : 0)
SIMD(vseteq, x == y)
SIMD(vsetges, x >= y)
SIMD(vsetgtu, ux > uy)
SIMD(vsetltu, ux < uy)
SIMD(vsetne, x != y)
SIMD1(vabs, std::abs(x))
SIMD1(vabsss, held(std::abs(x), top))
SIMD1(vneg, -x)
SIMD1(vnegss, held(-x, top))
OP u32 vsads2_(u32 a, u32 b) { return BOTH(__vsads2(a, b), u32(std::abs(s16(a) - s16(b)) + std::abs(s16(a >> 16) - s16(b >> 16)))); }
OP u32 vsadu4_(u32 a, u32 b) { u32 s = 0; for (int i = 0; i < 32; i += 8) s += BOTH(0, std::abs(s32(u8(a >> i)) - s32(u8(b >> i)))); return BOTH(__vsadu4(a, b), s); }
OP s32 vimax3_(s32 a, s32 b, s32 c) { return BOTH(__vimax3_s32(a, b, c), (a > b ? (a > c ? a : c) : (b > c ? b : c))); }
// Their sum must not overflow.
OP s32 viaddmin_(s32 a, s32 b, s32 c) { return BOTH(__viaddmin_s32(a >> 1, b >> 1, c), (smaller((a >> 1) + (b >> 1), c))); }
OP s32 viaddmaxrelu_(s32 a, s32 b, s32 c) { return BOTH(__viaddmax_s32_relu(a >> 1, b >> 1, c), (larger(larger((a >> 1) + (b >> 1), c), 0))); }
OP u32 vimax3_s16_(u32 a, u32 b, u32 c) { return BOTH(__vimax3_s16x2(a, b, c), (each<u16>(each<u16>(a, b, [](s32 x, s32 y, s32, s32, s32) { return x > y ? x : y; }), c, [](s32 x, s32 y, s32, s32, s32) { return x > y ? x : y; }))); }

// ---- floats: the host's rounding mode gives the same results. Not-a-numbers are made one, as hardware differs. ---------
HD inline u32 word(f32 x) { u32 r; memcpy(&r, &x, 4); return x == x ? r : 0x7fc00000u; }
HD inline u64 word(f64 x) { u64 r; memcpy(&r, &x, 8); return x == x ? r : 0x7ff8000000000000ull; }
template <class T> HD inline T word(T x) { return x; }
HD inline f32 word_float(u32 x) { f32 r; memcpy(&r, &x, 4); return r; }
HD inline f64 word_double(u64 x) { f64 r; memcpy(&r, &x, 8); return r; }

template <class F> __attribute__((noinline)) auto in_mode(int mode, F f) -> decltype(f()) {
    fesetround(mode);
    auto r = f();
    fesetround(FE_TONEAREST);
    return r;
}
template <class T> __attribute__((noinline)) T opaque(T x) { volatile T y = x; return y; }  // nothing is folded at compile time
#define ROUNDED(suffix, mode)                                                                                               \
    OP f32 fadd_##suffix(f32 a, f32 b) { return BOTH(__fadd_##suffix(a, b), in_mode(mode, [=] { return opaque(opaque(a) + opaque(b)); })); } \
    OP f32 fsub_##suffix(f32 a, f32 b) { return BOTH(__fsub_##suffix(a, b), in_mode(mode, [=] { return opaque(opaque(a) - opaque(b)); })); } \
    OP f32 fmul_##suffix(f32 a, f32 b) { return BOTH(__fmul_##suffix(a, b), in_mode(mode, [=] { return opaque(opaque(a) * opaque(b)); })); } \
    OP f32 fdiv_##suffix(f32 a, f32 b) { return BOTH(__fdiv_##suffix(a, b), in_mode(mode, [=] { return opaque(opaque(a) / opaque(b)); })); } \
    OP f32 frcp_##suffix(f32 a) { return BOTH(__frcp_##suffix(a), in_mode(mode, [=] { return opaque(1.0f / opaque(a)); })); } \
    OP f32 fsqrt_##suffix(f32 a) { return BOTH(__fsqrt_##suffix(a), in_mode(mode, [=] { return opaque(sqrtf(opaque(a))); })); } \
    OP f32 fmaf_##suffix(f32 a, f32 b, f32 c) { return BOTH(__fmaf_##suffix(a, b, c), in_mode(mode, [=] { return opaque(fmaf(opaque(a), opaque(b), opaque(c))); })); } \
    OP f64 dadd_##suffix(f64 a, f64 b) { return BOTH(__dadd_##suffix(a, b), in_mode(mode, [=] { return opaque(opaque(a) + opaque(b)); })); } \
    OP f64 dsub_##suffix(f64 a, f64 b) { return BOTH(__dsub_##suffix(a, b), in_mode(mode, [=] { return opaque(opaque(a) - opaque(b)); })); } \
    OP f64 dmul_##suffix(f64 a, f64 b) { return BOTH(__dmul_##suffix(a, b), in_mode(mode, [=] { return opaque(opaque(a) * opaque(b)); })); } \
    OP f64 ddiv_##suffix(f64 a, f64 b) { return BOTH(__ddiv_##suffix(a, b), in_mode(mode, [=] { return opaque(opaque(a) / opaque(b)); })); } \
    OP f64 drcp_##suffix(f64 a) { return BOTH(__drcp_##suffix(a), in_mode(mode, [=] { return opaque(1.0 / opaque(a)); })); } \
    OP f64 dsqrt_##suffix(f64 a) { return BOTH(__dsqrt_##suffix(a), in_mode(mode, [=] { return opaque(sqrt(opaque(a))); })); } \
    OP f64 fma_##suffix(f64 a, f64 b, f64 c) { return BOTH(__fma_##suffix(a, b, c), in_mode(mode, [=] { return opaque(fma(opaque(a), opaque(b), opaque(c))); })); } \
    OP f32 double2float_##suffix(f64 a) { return BOTH(__double2float_##suffix(a), in_mode(mode, [=] { return opaque((f32)opaque(a)); })); } \
    OP f32 int2float_##suffix(s32 a) { return BOTH(__int2float_##suffix(a), in_mode(mode, [=] { return opaque((f32)opaque(a)); })); } \
    OP f32 uint2float_##suffix(u32 a) { return BOTH(__uint2float_##suffix(a), in_mode(mode, [=] { return opaque((f32)opaque((s64)a)); })); } \
    OP f32 ll2float_##suffix(s64 a) { return BOTH(__ll2float_##suffix(a), in_mode(mode, [=] { return opaque((f32)opaque(a)); })); } \
    OP f32 ull2float_##suffix(u64 a) { return BOTH(__ull2float_##suffix(a), in_mode(mode, [=] { return unsigned_to<f32>(a); })); } \
    OP f64 ll2double_##suffix(s64 a) { return BOTH(__ll2double_##suffix(a), in_mode(mode, [=] { return opaque((f64)opaque(a)); })); } \
    OP f64 ull2double_##suffix(u64 a) { return BOTH(__ull2double_##suffix(a), in_mode(mode, [=] { return unsigned_to<f64>(a); })); } \
    OP s32 float2int_##suffix(f32 a) { return BOTH(__float2int_##suffix(a), (to_integer<s32, f32>(a, mode))); }             \
    OP u32 float2uint_##suffix(f32 a) { return BOTH(__float2uint_##suffix(a), (to_integer<u32, f32>(a, mode))); }           \
    OP s64 float2ll_##suffix(f32 a) { return BOTH(__float2ll_##suffix(a), (to_integer<s64, f32>(a, mode))); }               \
    OP u64 float2ull_##suffix(f32 a) { return BOTH(__float2ull_##suffix(a), (to_integer<u64, f32>(a, mode))); }             \
    OP s32 double2int_##suffix(f64 a) { return BOTH(__double2int_##suffix(a), (to_integer<s32, f64>(a, mode))); }           \
    OP u32 double2uint_##suffix(f64 a) { return BOTH(__double2uint_##suffix(a), (to_integer<u32, f64>(a, mode))); }         \
    OP s64 double2ll_##suffix(f64 a) { return BOTH(__double2ll_##suffix(a), (to_integer<s64, f64>(a, mode))); }             \
    OP u64 double2ull_##suffix(f64 a) { return BOTH(__double2ull_##suffix(a), (to_integer<u64, f64>(a, mode))); }           \
    OP u16 float2half_##suffix(f32 a) { return half_word(__float2half_##suffix(a)); }
// A 64-bit number rounded once: halved with its lowest bit kept, it rounds to the same side.
template <class F> F unsigned_to(u64 a) {
    if (s64(a) >= 0) return opaque((F)opaque(s64(a)));
    F h = opaque((F)opaque(s64(a >> 1 | (a & 1))));
    return opaque(h + h);
}
// PTX: saturated; NaN is 0, and 1 followed by zeros from f64 or to 64 bits.
template <class T, class F> T to_integer(F a, int mode) {
    const int bits = sizeof(T) * 8;
    if (a != a) return sizeof(F) == 8 || bits == 64 ? T(Wide<T>(1) << (bits - 1)) : T(0);
    F r = in_mode(mode, [=] { return opaque(nearbyint(opaque(a))); });
    F top = ldexp(F(1), is_signed_<T>() ? bits - 1 : bits);
    if (r >= top) return T(is_signed_<T>() ? (Wide<T>(1) << (bits - 1)) - 1 : ~Wide<T>(0));
    if (r < (is_signed_<T>() ? -top : F(0))) return T(is_signed_<T>() ? Wide<T>(1) << (bits - 1) : 0);
    return T(r);
}
HD inline u16 half_word(__half h) { u16 r; memcpy(&r, &h, 2); return (r & 0x7fff) > 0x7c00 ? 0x7fff : r; }
HD inline u16 bf16_word(__nv_bfloat16 h) { u16 r; memcpy(&r, &h, 2); return (r & 0x7fff) > 0x7f80 ? 0x7fff : r; }
HD inline __half word_half(u16 x) { __half h; memcpy((void *)&h, &x, 2); return h; }
HD inline __nv_bfloat16 word_bf16(u16 x) { __nv_bfloat16 h; memcpy((void *)&h, &x, 2); return h; }
ROUNDED(rn, FE_TONEAREST)
ROUNDED(rz, FE_TOWARDZERO)
ROUNDED(ru, FE_UPWARD)
ROUNDED(rd, FE_DOWNWARD)
inline bool below(f64 a, f64 b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); }
OP f32 fminf_(f32 a, f32 b) { return BOTH(fminf(a, b), a != a ? b : b != b ? a : below(a, b) ? a : b); }
OP f32 fmaxf_(f32 a, f32 b) { return BOTH(fmaxf(a, b), a != a ? b : b != b ? a : below(a, b) ? b : a); }
OP f64 fmin_(f64 a, f64 b) { return BOTH(fmin(a, b), a != a ? b : b != b ? a : below(a, b) ? a : b); }
OP f64 fmax_(f64 a, f64 b) { return BOTH(fmax(a, b), a != a ? b : b != b ? a : below(a, b) ? b : a); }
OP f32 floorf_(f32 a) { return floorf(a); }
OP f32 ceilf_(f32 a) { return ceilf(a); }
OP f32 truncf_(f32 a) { return truncf(a); }
OP f32 rintf_(f32 a) { return rintf(a); }
OP f32 roundf_(f32 a) { return roundf(a); }
OP f64 floor_(f64 a) { return floor(a); }
OP f64 ceil_(f64 a) { return ceil(a); }
OP f64 trunc_(f64 a) { return trunc(a); }
OP f64 rint_(f64 a) { return rint(a); }
OP f64 round_(f64 a) { return round(a); }
OP f32 fabsf_(f32 a) { return fabsf(a); }
OP f64 fabs_(f64 a) { return fabs(a); }
OP f32 negf(f32 a) { return -a; }
OP f64 negd(f64 a) { return -a; }
OP f32 copysignf_(f32 a, f32 b) { return b == b ? copysignf(a, b) : a; }
OP f64 copysign_(f64 a, f64 b) { return b == b ? copysign(a, b) : a; }
OP f32 fmodf_(f32 a, f32 b) { return fmodf(a, b); }
OP f64 fmod_(f64 a, f64 b) { return fmod(a, b); }
OP f32 nextafterf_(f32 a, f32 b) { return nextafterf(a, b); }
OP f32 ldexpf_(f32 a, s32 b) { return ldexpf(a, b % 300); }
OP f64 ldexp_(f64 a, s32 b) { return ldexp(a, b % 2200); }
OP f32 saturatef(f32 a) { return BOTH(__saturatef(a), !(a > 0) ? 0.0f : a > 1 ? 1.0f : a); }
OP f64 float2double_(f32 a) { return f64(a); }
OP f64 int2double_(s32 a) { return f64(a); }
OP f64 uint2double_(u32 a) { return f64(a); }
OP s32 signs(f32 a) { return a == a ? signbit(a) * 2 + isinf(a) : 7; }
OP s32 signsd(f64 a) { return a == a ? signbit(a) * 2 + isinf(a) : isnan(a) * 5; }
OP s32 order(f32 a, f32 b) { return (a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * !(a > b) + 32 * !(a >= b) + 64 * !(a < b); }
OP s32 orderd(f64 a, f64 b) { return (a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * !(a > b) + 32 * !(a >= b) + 64 * !(a < b); }
OP f32 choose(f32 a, f32 b, f32 c) { return a < b ? c : b; }
OP f64 choosed(f64 a, f64 b, f64 c) { return !(a >= b) ? c : a; }
OP u32 float_bits(f32 a) { return word(a); }
OP u64 double_bits(f64 a) { return word(a); }
OP f32 bits_float(u32 a) { return word_float(a); }
OP f64 bits_double(u64 a) { return word_double(a); }
// One byte and halfword of an integer, as the narrow conversions saturate.
#define NARROW(to, T, low, high)                                                                                            \
    OP T sat_##to##_s32(s32 a) { PTX_NARROW(T, "cvt.sat." #to ".s32", "r"); return limited<T>(a, low, high); }              \
    OP T sat_##to##_u32(u32 a) { PTX_NARROW(T, "cvt.sat." #to ".u32", "r"); return limited<T>(a, low, high); }              \
    OP T sat_##to##_s64(s64 a) { PTX_NARROW(T, "cvt.sat." #to ".s64", "l"); return limited<T>(a, low, high); }              \
    OP T rni_##to##_f32(f32 a) { PTX_NARROW(T, "cvt.rni.sat." #to ".f32", "f"); return a != a ? T(0) : a >= high ? T(high) : a <= low ? T(low) : T(rint(a)); } \
    OP T rzi_##to##_f64(f64 a) { if (a != a) return 1; PTX_NARROW(T, "cvt.rzi.sat." #to ".f64", "d"); return a >= high ? T(high) : a <= low ? T(low) : T(trunc(a)); }
#ifdef __CUDA_ARCH__
#define PTX_NARROW(T, text, A) do { u32 d_; asm("{.reg .b32 t;\n mov.b32 t, 0;\n" text " t, %1;\n mov.b32 %0, t;}" : "=r"(d_) : A(a)); return T(d_); } while (0)
#else
#define PTX_NARROW(...)
#endif
NARROW(s8, s8, -128, 127)
NARROW(u8, u8, 0, 255)
NARROW(s16, s16, -32768, 32767)
NARROW(u16, u16, 0, 65535)
// ---- halves, held as words: cuda_fp16.h and cuda_bf16.h have them for the host as well -----------------------------------
OP f32 half2float(u16 a) { return __half2float(word_half(a)); }
OP f32 bf162float(u16 a) { return __bfloat162float(word_bf16(a)); }
OP u16 float2bf16_rn(f32 a) { return bf16_word(__float2bfloat16_rn(a)); }
OP u16 float2bf16_rz(f32 a) { return bf16_word(__float2bfloat16_rz(a)); }
OP u16 double2half_(f64 a) { return half_word(__double2half(a)); }
OP u16 double2bf16_(f64 a) { return bf16_word(__double2bfloat16(a)); }
OP u16 hadd_(u16 a, u16 b) { return half_word(__hadd(word_half(a), word_half(b))); }
OP u16 hsub_(u16 a, u16 b) { return half_word(__hsub(word_half(a), word_half(b))); }
OP u16 hmul_(u16 a, u16 b) { return half_word(__hmul(word_half(a), word_half(b))); }
OP u16 bfadd_(u16 a, u16 b) { return bf16_word(__hadd_rn(word_bf16(a), word_bf16(b))); }
OP u16 bfmul_(u16 a, u16 b) { return bf16_word(__hmul_rn(word_bf16(a), word_bf16(b))); }
// a * b + c of halves, rounded to odd, so that rounding it again to a half is as good as rounding once.
inline f64 odd_fma(f64 a, f64 b, f64 c) {
    feclearexcept(FE_INEXACT);
    f64 r = in_mode(FE_TOWARDZERO, [=] { return opaque(fma(opaque(a), opaque(b), opaque(c))); });
    return fetestexcept(FE_INEXACT) ? word_double(word(r) | 1) : r;
}
inline u16 half_fma(u16 a, u16 b, u16 c) {
    return half_word(__double2half(odd_fma(__half2float(word_half(a)), __half2float(word_half(b)), __half2float(word_half(c)))));
}
inline u16 bf16_fma(u16 a, u16 b, u16 c) {
    return bf16_word(__double2bfloat16(odd_fma(__bfloat162float(word_bf16(a)), __bfloat162float(word_bf16(b)), __bfloat162float(word_bf16(c)))));
}
OP u16 hfma_(u16 a, u16 b, u16 c) { return BOTH(half_word(__hfma(word_half(a), word_half(b), word_half(c))), half_fma(a, b, c)); }
OP u16 bffma_(u16 a, u16 b, u16 c) { return BOTH(bf16_word(__hfma(word_bf16(a), word_bf16(b), word_bf16(c))), bf16_fma(a, b, c)); }
OP u16 habs_(u16 a) { return half_word(__habs(word_half(a))); }
OP u16 hneg_(u16 a) { return half_word(__hneg(word_half(a))); }
OP u16 hmin_(u16 a, u16 b) { return half_word(__hmin(word_half(a), word_half(b))); }
OP u16 hmax_(u16 a, u16 b) { return half_word(__hmax(word_half(a), word_half(b))); }
OP u16 hmaxnan_(u16 a, u16 b) { return half_word(__hmax_nan(word_half(a), word_half(b))); }
OP u16 bfmin_(u16 a, u16 b) { return bf16_word(__hmin(word_bf16(a), word_bf16(b))); }
OP s32 horder(u16 a, u16 b) { return __hlt(word_half(a), word_half(b)) + 2 * __hle(word_half(a), word_half(b)) + 4 * __heq(word_half(a), word_half(b)) + 8 * __hneu(word_half(a), word_half(b)) + 16 * __hgtu(word_half(a), word_half(b)); }
OP s32 bforder(u16 a, u16 b) { return __hlt(word_bf16(a), word_bf16(b)) + 2 * __hge(word_bf16(a), word_bf16(b)) + 4 * __heq(word_bf16(a), word_bf16(b)) + 8 * __hltu(word_bf16(a), word_bf16(b)); }
OP s32 half2int_rz(u16 a) { return __half2int_rz(word_half(a)); }
OP u32 half2uint_rz(u16 a) { return __half2uint_rz(word_half(a)); }
OP s16 half2short_rz(u16 a) { return __half2short_rz(word_half(a)); }
OP u16 half2ushort_rz(u16 a) { return __half2ushort_rz(word_half(a)); }
OP s64 half2ll_rz(u16 a) { return __half2ll_rz(word_half(a)); }
OP u16 int2half_(s32 a) { return half_word(__int2half_rn(a)); }
OP u16 uint2half_(u32 a) { return half_word(__uint2half_rn(a)); }
OP u16 short2half_(s16 a) { return half_word(__short2half_rn(a)); }
OP u16 ll2half_(s64 a) { return half_word(__ll2half_rn(a)); }
OP u16 int2bf16_(s32 a) { return bf16_word(__int2bfloat16_rn(a)); }
OP s32 bf162int_(u16 a) { return __bfloat162int_rz(word_bf16(a)); }
OP u32 hadd2_(u32 a, u32 b) { return u32(hadd_(u16(a >> 16), u16(b >> 16))) << 16 | hadd_(u16(a), u16(b)); }
OP u32 half2_fma(u32 a, u32 b, u32 c) {
#ifdef __CUDA_ARCH__
    __half2 x = __halves2half2(word_half(u16(a)), word_half(u16(a >> 16))), y = __halves2half2(word_half(u16(b)), word_half(u16(b >> 16)));
    __half2 z = __halves2half2(word_half(u16(c)), word_half(u16(c >> 16)));
    __half2 r = __hmul2(__hfma2(x, y, z), __hsub2(y, x));
    return u32(half_word(__high2half(r))) << 16 | half_word(__low2half(r));
#else
    u32 r = 0;
    for (int i = 0; i < 32; i += 16) r |= u32(hmul_(half_fma(u16(a >> i), u16(b >> i), u16(c >> i)), hsub_(u16(b >> i), u16(a >> i)))) << i;
    return r;
#endif
}
OP u32 half2_pack(f32 a, f32 b) { __half2 r = __floats2half2_rn(a, b); return u32(half_word(__high2half(r))) << 16 | half_word(__low2half(r)); }

// ---- memory: values of any type at any offset of a byte buffer -----------------------------------------------------------
template <class T> HD inline T peek(const u8 *buffer, u32 offset) { T r; memcpy(&r, buffer + offset, sizeof r); return r; }
template <class T> HD inline void poke(u8 *buffer, u32 offset, T x) { auto bits = word(x); memcpy(buffer + offset, &bits, sizeof x); }
template <class T> HD inline T peek_aligned(const u8 *buffer, u32 offset) {
    T r;
    memcpy(&r, __builtin_assume_aligned(buffer + offset / sizeof(T) * sizeof(T), sizeof(T)), sizeof r);
    return r;
}
template <class T> HD inline void poke_aligned(u8 *buffer, u32 offset, T x) {
    auto bits = word(x);
    memcpy(__builtin_assume_aligned(buffer + offset / sizeof(T) * sizeof(T), sizeof(T)), &bits, sizeof bits);
}

HD inline u64 mixed(u64 h, u64 x) { return (h ^ x) * 0x9E3779B97F4A7C15ull ^ h >> 29; }
HD inline u64 noise(u64 i) {
    u64 x = (i + 1) * 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}
// Numbers with the edges of every type among them.
inline u64 edge(u64 i) {
    u64 x = noise(i), k = noise(i ^ 0x5555) % 16;
    const f64 doubles[] = {0.0, -0.0, 1.0, 0.5, 1e300, 4e-320, INFINITY, 2147483648.5, -9.3e18, 65504};
    if (k == 0) return 0;
    if (k == 1) return ~0ull;
    if (k == 2) return 1ull << (x & 63);
    if (k == 3) return (1ull << (x & 63)) - 1;
    if (k == 4) return x & 0xff;
    if (k == 5) return word(doubles[x % 10]);
    if (k == 6) return (u64)word((f32)doubles[x % 10]) << 32 | word((f32)doubles[x / 16 % 10]);
    if (k == 7) return (u64)(s64)(s32)x;
    if (k == 8) return word((f64)(s64)x / 4294967296.0);
    if (k == 9) return (u64)word((f32)(s32)x / 65536) << 32 | word((f32)(s32)(x >> 32));
    if (k == 10) return 0x3c003c007c007bffull ^ (x & 0x8001800180018001ull);
    return x;
}

// ---- running and comparing -------------------------------------------------------------------------------------------------
#define CHECK(call)                                                                                     \
    do {                                                                                                \
        cudaError_t e_ = (call);                                                                        \
        if (e_ != cudaSuccess) {                                                                        \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(e_));               \
            exit(2);                                                                                    \
        }                                                                                               \
    } while (0)

template <class T> struct Array {
    T *device;
    std::vector<T> host;  // what the host computes with
    explicit Array(size_t n) : host(n) {
        memset((void *)host.data(), 0, n * sizeof(T));
        CHECK(cudaMalloc(&device, n * sizeof(T)));
        up();
    }
    template <class F> Array(size_t n, F f) : Array(n) {
        for (size_t i = 0; i < n; i++) host[i] = (T)f(i);
        up();
    }
    Array(const Array &) = delete;
    ~Array() { cudaFree(device); }
    void up() { CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice)); }
    // Whether the device's copy differs from the host's; prints the first difference, and the first of each row of
    // `row` elements where rows have names.
    int differences(const char *name, size_t row = 0, const char *const *names = nullptr) {
        std::vector<T> got(host.size());
        CHECK(cudaMemcpy((void *)got.data(), device, host.size() * sizeof(T), cudaMemcpyDeviceToHost));
        size_t count = 0, last = ~(size_t)0;
        for (size_t i = 0; i < host.size(); i++) {
            if (memcmp(&got[i], &host[i], sizeof(T)) == 0) continue;
            count++;
            if (last == (row ? i / row : 0)) continue;
            last = row ? i / row : 0;
            printf("%s: %s: element %zu:", name, names ? names[last] : "", row ? i % row : i);
            for (size_t at = 0; at < sizeof(T); at += 8) {
                u64 have = 0, want = 0;
                size_t n = sizeof(T) - at < 8 ? sizeof(T) - at : 8;
                memcpy(&have, (char *)&got[i] + at, n), memcpy(&want, (char *)&host[i] + at, n);
                if (have != want) printf(" byte %zu: device %016llx, host %016llx", at, (unsigned long long)have, (unsigned long long)want);
            }
            printf("\n");
        }
        if (count) printf("%s: %zu of %zu elements differ\n", name, count, host.size());
        return count != 0;
    }
};
