/* tex, tld4, suld and sust, one lane at a time.
 *
 * Filtering follows the CUDA programming guide, "Texture Fetching": with x in texels, linear filtering reads the texel
 * at floor(x - 0.5) and the next one, and weights them by the fraction, which has 8 bits. Before that, x - 0.5 is rounded
 * to these 8 bits, to nearest. In two dimensions the weights of the four texels also have 8 bits, and add up to 1:
 * measured on an H200 on 2026-11-22, where a corner's weight of 43.14 / 256 counted as 43 / 256. It is not known whether
 * these weights are rounded or truncated (here: rounded), nor what they are in a third dimension (here: exact). The
 * address mode maps each texel outside the texture to one inside. */

#include "emu.h"
#include "textures.h"
#include <math.h>

static struct texture *object_of(struct warp *w, u32 site, u32 lane, u64 handle, int surface) {
    struct texture *t = texture_of(handle);
    if (!t || t->is_surface != surface)
        rt_fault(w, site, lane, cudaErrorInvalidTexture, "not_a_texture", "object:%s\nhow:%s", surface ? "surface" : "texture", t ? "other" : "none");
    if (!memory_find(t->memory)) rt_fault(w, site, lane, cudaErrorIllegalAddress, "texture_memory_freed", "object:%s", surface ? "surface" : "texture");
    return t;
}

/* ---- texels ------------------------------------------------------------------------------------------------------------ */

static const u8 *texel_at(const struct texture *t, i64 x, i64 y, i64 z) { return t->host + (u64)z * t->slice + (u64)y * t->pitch + (u64)x * t->element; }

/* The channels as a kernel gets them: bits of a float, or integers of 32 bits. Missing channels are 0, except that the
 * last one of floats is 1. */
static void read_channels(const struct texture *t, const u8 *p, u32 out[4]) {
    int is_float = t->kind == cudaChannelFormatKindFloat || t->normalizes;
    out[0] = out[1] = out[2] = 0, out[3] = is_float ? f2u(1) : 1;
    for (u32 c = 0; c < t->channels; c++) {
        u32 v = 0;
        memcpy(&v, p + c * t->bits / 8, t->bits / 8);
        int is_signed = t->kind == cudaChannelFormatKindSigned;
        i32 s = t->bits == 32 ? (i32)v : (i32)(v << (32 - t->bits)) >> (32 - t->bits);
        if (t->kind == cudaChannelFormatKindFloat) out[c] = t->bits == 16 ? f2u(f16_to_f32_s(v)) : v;
        else if (t->normalizes) {
            float largest = (float)((1u << (t->bits - is_signed)) - 1);
            float f = is_signed ? (float)s / largest : (float)v / largest;
            out[c] = f2u(f < -1 ? -1 : f);
        } else out[c] = is_signed ? (u32)s : v;
    }
}

/* The index inside the texture that the address mode gives for texel `i`; -1 for the border. */
static i64 addressed(i64 i, u32 size, enum cudaTextureAddressMode mode) {
    i64 n = size;
    if (i >= 0 && i < n) return i;
    switch (mode) {
    case cudaAddressModeWrap: return ((i % n) + n) % n;
    case cudaAddressModeMirror:
        i = ((i % (2 * n)) + 2 * n) % (2 * n);
        return i < n ? i : 2 * n - 1 - i;
    case cudaAddressModeBorder: return -1;
    default: return i < 0 ? 0 : n - 1;
    }
}

static void fetch(const struct texture *t, u32 dimensions, const i64 i[3], u32 layer, u32 out[4]) {
    i64 at[3] = {0, 0, layer};
    for (u32 d = 0; d < dimensions; d++) {
        at[d] = addressed(i[d], t->size[d], t->mode[d]);
        if (at[d] < 0) {
            for (u32 c = 0; c < 4; c++) out[c] = f2u(t->border[c]);
            if (t->kind != cudaChannelFormatKindFloat && !t->normalizes)
                for (u32 c = 0; c < 4; c++) out[c] = (u32)(i64)t->border[c];
            return;
        }
    }
    read_channels(t, texel_at(t, at[0], at[1], at[2]), out);
}

/* A coordinate in texels, as linear filtering rounds it, with a fraction of 8 bits. */
static i64 fixed(double x) { return (i64)floor((x - 0.5) * 256 + 0.5); }

static void filter(const struct texture *t, u32 dimensions, const double x[3], u32 layer, u32 out[4]) {
    i64 base[3] = {0};
    double weight[3] = {0}, sum[4] = {0};
    for (u32 d = 0; d < dimensions; d++) {
        i64 f = fixed(x[d]);
        base[d] = f >> 8, weight[d] = (double)(f & 255) / 256;
    }
    const double both = floor(weight[0] * weight[1] * 256 + 0.5) / 256; /* the weight of the texel that is next in x and y */
    const double plane[4] = {1 - weight[0] - weight[1] + both, weight[0] - both, weight[1] - both, both};
    for (u32 corner = 0; corner < 1u << dimensions; corner++) {
        i64 i[3];
        u32 texel[4];
        double share = plane[corner & 3];
        for (u32 d = 0; d < dimensions; d++) i[d] = base[d] + (corner >> d & 1);
        if (dimensions == 3) share *= corner >> 2 ? weight[2] : 1 - weight[2];
        if (share == 0) continue; /* even an infinite texel has no effect then */
        fetch(t, dimensions, i, layer, texel);
        for (u32 c = 0; c < 4; c++) sum[c] += share * u2f(texel[c]);
    }
    for (u32 c = 0; c < 4; c++) out[c] = f2u((float)sum[c]);
}

/* The four texels that linear filtering would read, of one channel, counter-clockwise from the lower left. */
static void gather(const struct texture *t, const double x[3], u32 layer, int channel, u32 out[4]) {
    static const i64 corner[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
    for (u32 k = 0; k < 4; k++) {
        i64 i[3] = {(fixed(x[0]) >> 8) + corner[k][0], (fixed(x[1]) >> 8) + corner[k][1], 0};
        u32 texel[4];
        fetch(t, 2, i, layer, texel);
        out[k] = texel[channel];
    }
}

void rt_texture(struct warp *w, u32 site, u32 m, int geometry, int is_float, int channel, const u64 *object, const u32 *at, u32 *out) {
    u32 dimensions = geometry & 3, first = geometry & LAYERED ? 1 : 0;
    struct texture *t = NULL;
    for (u32 todo = m; todo; todo &= todo - 1) {
        u32 l = lowest_lane(todo), texel[4], layer = 0;
        if (!t || texture_of(object[l]) != t) t = object_of(w, site, l, object[l], 0);
        if (first) layer = (i32)at[l] < 0 ? 0 : at[l] >= t->layers ? t->layers - 1 : at[l];
        double x[3] = {0};
        i64 i[3] = {0};
        for (u32 d = 0; d < dimensions; d++) {
            u32 bits = at[32 * (first + d) + l];
            x[d] = is_float ? u2f(bits) : (i32)bits;
            if (x[d] != x[d]) x[d] = 0;
            x[d] = x[d] > 1e9 ? 1e9 : x[d] < -1e9 ? -1e9 : x[d];
            if (is_float && t->normalized) x[d] *= t->size[d];
            i[d] = (i64)floor(x[d]);
        }
        if (channel >= 0) gather(t, x, layer, channel, texel);
        else if (is_float && t->linear) filter(t, dimensions, x, layer, texel);
        else fetch(t, dimensions, i, layer, texel);
        for (u32 c = 0; c < 4; c++) out[32 * c + l] = texel[c];
    }
}

/* ---- surfaces ---------------------------------------------------------------------------------------------------------- */

void rt_surface(struct warp *w, u32 site, u32 m, int geometry, int bounds, int stores, u32 bytes, u32 count, const u64 *object, const u32 *at, u64 *values) {
    u32 dimensions = geometry & 3, first = geometry & LAYERED ? 1 : 0;
    for (u32 todo = m; todo; todo &= todo - 1) {
        u32 l = lowest_lane(todo), whole = bytes * count;
        struct texture *t = object_of(w, site, l, object[l], 1);
        i64 i[3] = {0, 0, first ? (i32)at[l] : 0}; /* i[0] counts bytes */
        int outside = first && (u64)i[2] >= t->layers;
        for (u32 d = 0; d < dimensions; d++) {
            i64 size = d ? t->size[d] : (i64)t->size[0] * t->element;
            i[d] = (i32)at[32 * (first + d) + l];
            if (!d && i[0] % whole) rt_fault(w, site, l, cudaErrorMisalignedAddress, "surface_misaligned", "bytes=%u\nat=%lld", whole, (long long)i[0]);
            if (i[d] >= 0 && i[d] + (d ? 1 : whole) <= size) continue;
            if (bounds == BOUNDS_CLAMP) i[d] = i[d] < 0 ? 0 : size - (d ? 1 : whole);
            else outside = 1;
        }
        if (outside && bounds == BOUNDS_TRAP)
            rt_fault(w, site, l, cudaErrorLaunchFailure, "surface_outside", "x=%lld\ny=%lld\nz=%lld\nwidth=%u\nheight=%u\ndepth=%u\nelement=%u", (long long)i[0], (long long)i[1], (long long)i[2], t->size[0], t->size[1] ? t->size[1] : 1, first ? t->layers : t->size[2] ? t->size[2] : 1, t->element);
        u8 *p = outside ? NULL : (u8 *)texel_at(t, 0, i[1], i[2]) + i[0];
        for (u32 c = 0; c < count; c++) {
            u64 *v = &values[32 * c + l];
            if (!stores) *v = 0;
            if (!p) continue;
            if (stores) memcpy(p + c * bytes, v, bytes);
            else memcpy(v, p + c * bytes, bytes);
        }
        if (p && stores && is_watching) written_by_host((void *)(t->memory + (u64)(p - t->host)), whole);
    }
}

void rt_texture_query(struct warp *w, u32 site, u32 m, int what, const u64 *object, u32 *answer) {
    for (u32 todo = m; todo; todo &= todo - 1) {
        u32 l = lowest_lane(todo);
        const struct texture *t = texture_of(object[l]);
        if (!t) rt_fault(w, site, l, cudaErrorInvalidTexture, "not_a_texture", "object:texture\nhow:none");
        answer[l] = what == 3 ? t->layers : t->size[what];
    }
}
