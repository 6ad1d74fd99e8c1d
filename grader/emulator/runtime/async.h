/* Effects in flight: bulk copies (bulk.c) and products of warpgroups (wgmma.c). */
#ifndef ASYNC_H
#define ASYNC_H

#include "emu.h"

/* A barrier object at which a thread has just waited in vain: some copies in flight arrive, in a random order. */
void bulk_progress(struct block *b, const u64 *object);
/* The site of a copy under way to bytes of the block's shared memory, and its thread; 0 if there is none. */
int bulk_under_way(const struct block *b, u32 from, u32 to, u32 *site, u32 *thread);
/* Whether a copy that the block issued and that is under way completes at a barrier object. */
int bulk_completes_at(const struct block *b, const u64 *object);
/* A block starts or ends; its memory is freed. */
void bulk_start(struct block *b);
void bulk_finish(struct block *b);
void bulk_release(struct block *b);
void wgmma_start(struct block *b);
void wgmma_release(struct block *b);
/* The number of phases that a barrier object of the block has completed. */
u32 mbarrier_phase(struct block *b, const u64 *object);
/* Counts a copy's bytes at its barrier object, which was in this phase when the copy was issued. */
void mbarrier_complete(struct warp *w, u32 site, u32 lane, struct block *whose, u64 *object, u32 bytes, u32 phase);
void mbarrier_start(struct block *b);
void mbarrier_release(struct block *b);

/* Reads a matrix that a descriptor of wgmma describes: `rows` rows of 8 words along k, whole words (wgmma_operand.c). */
void wgmma_operand(struct warp *w, u32 site, u64 descriptor, u32 rows, u32 words, int by_columns, u32 *out);
/* Under a sanitizer: a warp begins to read rows `first` and up of an operand. */
void wgmma_watch_operand(struct warp *w, u32 site, u64 descriptor, u32 first, u32 rows, u32 words, int by_columns);

#endif
