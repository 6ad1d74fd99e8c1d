/* Tensor maps: cuTensorMapEncodeTiled and …Im2col, and the boxes that cp.async.bulk.tensor moves (PTX ISA, "Tensors", tiled
 * and im2col mode; CUDA driver API, "Tensor Map Object Management").
 *
 * In shared memory the elements of a box follow each other, dimension 0 first. With a swizzle of 2^B chunks of 16 bytes, B
 * address bits from bit 4 on are exclusive-ored with those from bit 7 on, as wgmma's descriptors expect. Elements outside
 * the tensor are read as zeros, or as NaN, and not written.
 *
 * In im2col mode a row is a pixel, with some channels (dimension 0). From the copy's coordinates on, the pixels follow each
 * other inside the pixels' box: dimension 1 advances first, by its element stride, and the last dimension last, by 1. A load
 * adds its offsets to the position of each pixel. */

#include "tensor_map.h"
#include <cuda.h>

_Static_assert(sizeof(struct tensor_map) <= sizeof(CUtensorMap), "a tensor map is 128 bytes");

static const u8 element_sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

static CUresult refuse_map(const char *why) {
    finding(NULL, ~0u, 0, "api", "bad_tensor_map", "why:%s", why);
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult encode(CUtensorMap *out, struct tensor_map m, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *size, const cuuint64_t *strides,
                       const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapFloatOOBfill fill) {
    if ((u32)type >= sizeof element_sizes || interleave || swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
        return finding(NULL, ~0u, 0, "api", "emulator_lacks", "function:cuTensorMapEncode\nwhat:interleaved layouts, packed types and swizzles with larger atoms\ninstead:run this program on a GPU (--engine cuda)"), CUDA_ERROR_NOT_SUPPORTED;
    const u32 element = element_sizes[type];
    m.magic = MAP_MAGIC, m.rank = (u8)rank, m.type = (u8)type, m.element = (u8)element, m.swizzle = (u8)(1u << swizzle), m.fills_nan = fill != 0, m.address = (u64)address;
    if (rank < 1 || rank > DIMENSIONS) return refuse_map("the rank must be from 1 to 5");
    if ((u64)address % 16) return refuse_map("the tensor's address must be a multiple of 16");
    for (u32 i = 0; i < rank; i++) {
        if (!size[i] || size[i] > 1ull << 32) return refuse_map("each size must be from 1 to 2^32");
        if (!m.pixels && (!box[i] || box[i] > 256)) return refuse_map("each size of the box must be from 1 to 256");
        if (!steps[i] || steps[i] > 8) return refuse_map("each element stride must be from 1 to 8");
        if (i && (strides[i - 1] % 16 || strides[i - 1] >= 1ull << 40)) return refuse_map("each stride must be a multiple of 16 bytes below 2^40");
        m.last[i] = (u32)(size[i] - 1), m.box[i] = m.pixels && i ? 1 : (u16)box[i], m.step[i] = i ? (u8)steps[i] : 1, m.stride[i] = i ? strides[i - 1] : element;
    }
    for (u32 i = rank; i < DIMENSIONS; i++) m.box[i] = m.step[i] = 1;
    if (box[0] * element % 16) return refuse_map("a row of the box must be a multiple of 16 bytes");
    if (swizzle && box[0] * element > 16u << swizzle) return refuse_map("a row of the box must not be longer than the swizzle");
    memset(out, 0, sizeof *out);
    memcpy(out, &m, sizeof m);
    return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *size, const cuuint64_t *strides,
                                const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    HOST_CALL();
    (void)promotion;
    return encode(out, (struct tensor_map){0}, type, rank, address, size, strides, box, steps, interleave, swizzle, fill);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *size, const cuuint64_t *strides,
                                 const int *low, const int *high, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    HOST_CALL();
    (void)promotion;
    if (rank < 3 || rank > DIMENSIONS) return refuse_map("the rank must be from 3 to 5");
    if (!channels || channels > 256) return refuse_map("the channels of a pixel must be from 1 to 256");
    if (!pixels || pixels > 1024) return refuse_map("the pixels of a column must be from 1 to 1024");
    struct tensor_map m = {.pixels = (u16)pixels};
    const int limit = 1 << (rank == 3 ? 15 : rank == 4 ? 7 : 4);
    for (u32 i = 0; i < rank - 2; i++) {
        if (low[i] < -limit || low[i] >= limit || high[i] < -limit || high[i] >= limit) return refuse_map("a corner of the pixels' box must be from -2^15 to 2^15 - 1 with 3 dimensions, from -2^7 to 2^7 - 1 with 4, from -2^4 to 2^4 - 1 with 5");
        if (low[i] > (i64)size[i + 1] - 1 + high[i]) return refuse_map("the pixels' box is empty: its upper corner, which counts from the tensor's end, is before its lower one");
        m.low[i] = (i16)low[i], m.high[i] = (i16)high[i];
    }
    return encode(out, m, type, rank, address, size, strides, &channels, steps, interleave, swizzle, fill);
}

/* ---- boxes ---------------------------------------------------------------------------------------------------------- */

static u32 count(const struct tensor_map *m, u32 i) { return (m->box[i] + m->step[i] - 1u) / m->step[i]; }

static u32 rows(const struct tensor_map *m) { return m->pixels ? m->pixels : count(m, 1) * count(m, 2) * count(m, 3) * count(m, 4); }

u32 box_bytes(const struct tensor_map *m) { return m->box[0] * m->element * rows(m); }

/* The index of a row in dimension `i`; leaves in `row` what the following dimensions need. */
static i64 index_in(const struct box *b, u32 i, u32 *row) {
    const struct tensor_map *m = &b->map;
    const u32 n = count(m, i);
    if (!m->pixels) {
        const i64 at = b->at[i] + (i64)(*row % n) * m->step[i];
        *row /= n;
        return at;
    }
    if (i + 1u >= m->rank) return b->at[i] + (i64)(i + 1u == m->rank ? *row : 0);
    const i64 low = m->low[i - 1], high = (i64)m->last[i] + m->high[i - 1], step = m->step[i], before = (high - b->at[i]) / step + 1;
    if (*row < before) { /* the first row's steps begin at the corner, later rows' at the box's start (seen on an H200) */
        const i64 at = b->at[i] + *row * step;
        *row = 0;
        return at + b->offset[i];
    }
    const i64 after = *row - before, places = (high - low) / step + 1;
    *row = (u32)(1 + after / places);
    return low + after % places * step + b->offset[i];
}

/* The address of element 0 of a row of the box, even if that is outside the tensor; 0 if the whole row is outside. */
static u64 row_address(const struct box *b, u32 row) {
    u64 address = b->map.address + (u64)((i64)b->at[0] * b->map.element);
    for (u32 i = 1; i < DIMENSIONS; i++) {
        const i64 at = index_in(b, i, &row);
        if (at < 0 || at > (i64)b->map.last[i]) return 0;
        address += (u64)at * b->map.stride[i];
    }
    return address;
}

/* The bytes of a row that are inside the tensor: from .. to. */
static void inside(const struct box *b, u32 *from, u32 *to) {
    const i64 low = -(i64)b->at[0], high = (i64)b->map.last[0] + 1 - b->at[0], all = b->map.box[0];
    *from = (u32)(low < 0 ? 0 : low > all ? all : low) * b->map.element;
    *to = (u32)(high < 0 ? 0 : high > all ? all : high) * b->map.element;
}

static u32 swizzled(const struct tensor_map *m, u32 at) { return at ^ ((at >> 7 & (m->swizzle - 1u)) << 4); }

static void fill(const struct tensor_map *m, u8 *to) {
    memset(to, m->fills_nan ? 0xff : 0, 16);
    for (u32 i = m->element - 1u; m->fills_nan && i < 16; i += m->element) to[i] = 0x7f;
}

void box_load(const struct box *b, u8 *shared, u32 offset) {
    const u32 width = b->map.box[0] * b->map.element;
    u32 from, to;
    inside(b, &from, &to);
    for (u32 r = 0; r < rows(&b->map); r++) {
        const u64 address = row_address(b, r);
        const u8 *source = address ? memory_host(address + from) : NULL;
        for (u32 x = 0; x < width; x += 16) {
            u8 chunk[16];
            if (!source || x < from || x + 16 > to) fill(&b->map, chunk);
            if (source && to > x && from < x + 16) {
                const u32 first = x < from ? from : x, last = x + 16 > to ? to : x + 16;
                memcpy(chunk + (first - x), source + (first - from), last - first);
            }
            memcpy(shared + swizzled(&b->map, offset + r * width + x), chunk, 16);
        }
    }
}

void box_store(const struct box *b, const u8 *shared, u32 offset, int reduction) {
    const u32 width = b->map.box[0] * b->map.element;
    u32 from, to;
    inside(b, &from, &to);
    for (u32 r = 0; r < rows(&b->map) && from < to; r++) {
        const u64 address = row_address(b, r);
        u8 *target = address ? memory_host(address + from) : NULL;
        for (u32 x = from / 16 * 16; target && x < to; x += 16) {
            const u32 first = x < from ? from : x, last = x + 16 > to ? to : x + 16;
            const u8 *chunk = shared + swizzled(&b->map, offset + r * width + x) + (first - x);
            if (reduction) reduce_elements(target + (first - from), chunk, last - first, reduction, b->map.type);
            else memcpy(target + (first - from), chunk, last - first);
        }
    }
}

int box_extent(const struct box *b, u64 *first, u64 *last) {
    u32 from, to, found = 0;
    inside(b, &from, &to);
    for (u32 r = 0; r < rows(&b->map) && from < to; r++) {
        const u64 address = row_address(b, r);
        if (!address) continue;
        if (!found++) *first = address + from;
        *last = address + to - 1;
    }
    return found > 0;
}

/* ---- reductions ----------------------------------------------------------------------------------------------------- */

static u64 float_sum(int type, u64 a, u64 b) {
    switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16: return f32_to_f16_s(f16_to_f32_s((u32)a) + f16_to_f32_s((u32)b));
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16: return f32_to_bf16_s(bf16_to_f32_s((u32)a) + bf16_to_f32_s((u32)b));
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64: return d2q(q2d(a) + q2d(b));
    default: return f2u(u2f((u32)a) + u2f((u32)b));
    }
}
static double float_value(int type, u64 a) {
    switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16: return f16_to_f32_s((u32)a);
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16: return bf16_to_f32_s((u32)a);
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64: return q2d(a);
    default: return u2f((u32)a);
    }
}
static int less(int type, u64 a, u64 b) {
    if (type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16) return float_value(type, a) < float_value(type, b);
    if (type == CU_TENSOR_MAP_DATA_TYPE_INT32) return (i32)a < (i32)b;
    return type == CU_TENSOR_MAP_DATA_TYPE_INT64 ? (i64)a < (i64)b : a < b;
}
static u64 combined(int how, int type, u64 old, u64 x) {
    switch (how) {
    case REDUCE_ADD: return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 ? float_sum(type, old, x) : old + x;
    case REDUCE_MIN: return less(type, x, old) ? x : old;
    case REDUCE_MAX: return less(type, old, x) ? x : old;
    case REDUCE_INC: return old >= x ? 0 : old + 1;
    case REDUCE_DEC: return old == 0 || old > x ? x : old - 1;
    case REDUCE_AND: return old & x;
    case REDUCE_OR: return old | x;
    default: return old ^ x;
    }
}

#define REDUCE(T)                                                                                                      \
    for (u32 at = 0; at < bytes; at += sizeof(T)) {                                                                    \
        T x, *place = (T *)(to + at), old = __atomic_load_n(place, __ATOMIC_SEQ_CST);                                  \
        memcpy(&x, from + at, sizeof x);                                                                               \
        while (!__atomic_compare_exchange_n(place, &old, (T)combined(how, type, old, x), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {} \
    }
void reduce_elements(u8 *to, const u8 *from, u32 bytes, int how, int type) {
    switch (element_sizes[type]) {
    case 1: REDUCE(u8) break;
    case 2: REDUCE(u16) break;
    case 4: REDUCE(u32) break;
    default: REDUCE(u64)
    }
}
