/* Video instructions and fns: arithmetic on words, half-words and bytes, as described in the PTX ISA.
 *
 * On sm_80 and sm_90 ptxas replaces the scalar ones by other instructions. Where its code departs from the PTX ISA,
 * this file follows the code (ptxas 13.0 for sm_80 and sm_90, read with nvdisasm; consistent with an H200's results on
 * 2026-11-22). vshl keeps 34 bits of the shifted number and saturates them to 32 bits, even if fewer are stored. vmad multiplies words
 * and adds c as signed words whatever their types. A sum or difference that is not saturated is truncated to a signed
 * word before it enters min or max. */

#include "emu.h"

static i64 clamp(i64 x, i64 low, i64 high) { return x < low ? low : x > high ? high : x; }
static i64 saturated(i64 x, u32 bits, int is_signed) {
    return is_signed ? clamp(x, -(1ll << (bits - 1)), (1ll << (bits - 1)) - 1) : clamp(x, 0, (1ll << bits) - 1);
}
static i64 extended(u32 x, u32 bits, int is_signed) {
    u64 part = x & ((1ull << bits) - 1);
    return is_signed && part >> (bits - 1) ? (i64)part - (1ll << bits) : (i64)part;
}
static i64 selected(u32 x, struct video_part part, int is_signed) { return extended(x >> part.shift, part.bits, is_signed); }

static i64 compute(const struct video *v, i64 a, i64 b) {
    switch (v->what) {
    case VIDEO_ADD: return a + b;
    case VIDEO_SUB: return a - b;
    case VIDEO_ABSDIFF: return a > b ? a - b : b - a;
    case VIDEO_MIN: return a < b ? a : b;
    case VIDEO_MAX: return a > b ? a : b;
    case VIDEO_AVRG: return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
    case VIDEO_SHL: return (i64)((u64)a << (v->wraps ? b & 31 : b > 32 ? 32 : b));
    case VIDEO_SHR: return a >> (v->wraps ? b & 31 : b > 32 ? 32 : b);
    default: return v->compare == 0 ? a == b : v->compare == 1 ? a != b : v->compare == 2 ? a < b : v->compare == 3 ? a <= b : v->compare == 4 ? a > b : a >= b;
    }
}

static u32 multiplied(const struct video *v, i64 a, i64 b, u32 third) {
    int is_signed = v->a_signed || v->b_signed || v->negate_product || v->negate_third;
    i64 r = (i64)(i32)a * (i32)b;
    if (!v->plus_one && v->negate_product) r = ~r;
    else if (!v->plus_one && v->negate_third) third = ~third;
    r += (i32)third;
    r += v->plus_one || v->negate_product || v->negate_third;
    i64 result = is_signed ? r >> v->scale : (i64)((u64)r >> v->scale);
    return (u32)(v->saturates ? saturated(result, 32, is_signed) : result);
}

u32 rt_video_lane(const struct video *v, u32 a, u32 b, u32 c) {
    if (v->what == VIDEO_MAD) return multiplied(v, selected(a, v->a, v->a_signed), selected(b, v->b, v->b_signed), c);
    if (v->parts > 1) {
        u32 bits = 32 / v->parts, result = v->accumulates ? c : 0;
        for (u32 i = 0; i < v->parts; i++) {
            u64 both = (u64)b << 32 | a;
            i64 x = extended((u32)(both >> (bits * v->pick_a[i])), bits, v->a_signed), y = extended((u32)(both >> (bits * v->pick_b[i])), bits, v->b_signed);
            i64 r = compute(v, x, y);
            if (v->saturates) r = saturated(r, bits, v->d_signed);
            int taken = v->mask >> i & 1;
            u32 whole = (u32)((1ull << bits) - 1);
            if (v->accumulates) result += taken ? (u32)r : 0;
            else result |= (taken ? (u32)r & whole : c >> (bits * i) & whole) << (bits * i);
        }
        return result;
    }
    i64 r = compute(v, selected(a, v->a, v->a_signed), selected(b, v->b, v->b_signed));
    if (v->saturates && v->what == VIDEO_SHL) r = saturated((i64)((u64)r << 30) >> 30, 32, v->d_signed);
    else if (v->saturates) r = saturated(r, v->d.bits, v->d_signed);
    else if (v->what == VIDEO_ADD || v->what == VIDEO_SUB) r = (i32)r;
    i64 third = extended(c, 32, v->d_signed);
    switch (v->second) {
    case VIDEO_ADD: r += third; break;
    case VIDEO_MIN: r = r < third ? r : third; break;
    case VIDEO_MAX: r = r > third ? r : third; break;
    }
    u32 kept = v->d.bits == 32 ? 0 : c & ~(((1u << v->d.bits) - 1) << v->d.shift);
    return v->d.bits == 32 ? (u32)r : kept | ((u32)r & ((1u << v->d.bits) - 1)) << v->d.shift;
}

void rt_video(const struct video *v, u32 m, const u32 *a, const u32 *b, const u32 *c, u32 *out) {
    for (; m; m &= m - 1) {
        u32 l = lowest_lane(m);
        out[l] = rt_video_lane(v, a[l], b[l], c[l]);
    }
}

u32 rt_fns(u32 mask, u32 base, u32 offset) {
    if (base > 31) return ~0u;
    if (offset == 0) return mask >> base & 1 ? base : ~0u;
    int step = (i32)offset > 0 ? 1 : -1;
    u32 left = step > 0 ? offset : 0u - offset;
    for (int at = (int)base; at >= 0 && at < 32; at += step)
        if (mask >> at & 1 && --left == 0) return (u32)at;
    return ~0u;
}
