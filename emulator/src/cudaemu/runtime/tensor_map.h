/* Tensor maps, which describe boxes of tensors in global memory for bulk copies (tensor_map.c). */
#ifndef TENSOR_MAP_H
#define TENSOR_MAP_H

#include "emu.h"

#define DIMENSIONS 5u
#define MAP_MAGIC 0x70616d54u

/* What cuTensorMapEncode… writes into its 128 bytes; only the emulator reads them. Dimension 0 is contiguous. In im2col mode
 * `box` is one pixel: all its sizes except the first are 1. */
struct tensor_map {
    u32 magic;
    u8 rank, type, element, swizzle, fills_nan, step[DIMENSIONS]; /* element: bytes; swizzle: chunks of 16 bytes */
    u16 box[DIMENSIONS];
    u32 last[DIMENSIONS];   /* the largest index */
    u64 address, stride[DIMENSIONS]; /* bytes */
    u16 pixels;             /* of a column, in im2col mode; else 0 */
    i16 low[DIMENSIONS - 2], high[DIMENSIONS - 2]; /* corners of the pixels' box in dimensions 1 to 3: `low` counts from 0, `high` from the largest index */
};

/* One box: the elements from `at` on. */
struct box { struct tensor_map map; i32 at[DIMENSIONS]; u32 offset[DIMENSIONS]; };

u32 box_bytes(const struct tensor_map *m);
/* Moves a box to shared memory at an offset, or the other way: `reduction` is REDUCE_… or 0 for a plain store. */
void box_load(const struct box *b, u8 *shared, u32 offset);
void box_store(const struct box *b, const u8 *shared, u32 offset, int reduction);
/* Stores the global addresses of the first and the last byte that a box has inside its tensor; returns 0 if it has none. */
int box_extent(const struct box *b, u64 *first, u64 *last);
/* Combines elements in global memory with others; `type` is a CUtensorMapDataType. */
void reduce_elements(u8 *to, const u8 *from, u32 bytes, int reduction, int type);

#endif
