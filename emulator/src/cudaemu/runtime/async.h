/* Asynchronous operations of a block: bulk copies (bulk.c), wgmma (wgmma.c), and barrier objects (mbarrier.c). */
#ifndef ASYNC_H
#define ASYNC_H

#include "emu.h"

/* Called when a thread has tested a barrier object without success: some copies in flight arrive, in random order. */
void bulk_progress(struct block *b, const u64 *object);
/* Whether a copy to bytes from..to of the block's shared memory is under way; if so, stores its site and thread. */
int bulk_under_way(const struct block *b, u32 from, u32 to, u32 *site, u32 *thread);
/* Whether a copy that the block issued is under way and completes at this barrier object. */
int bulk_completes_at(const struct block *b, const u64 *object);
/* Called when a block starts, when it ends, and when its memory is freed. */
void bulk_start(struct block *b);
void bulk_finish(struct block *b);
void bulk_release(struct block *b);
void wgmma_start(struct block *b);
void wgmma_release(struct block *b);
/* The number of phases that a barrier object of the block has completed. */
u32 mbarrier_phase(struct block *b, const u64 *object);
/* Counts a copy's bytes at its barrier object. `phase` is the object's phase when the copy was issued. */
void mbarrier_complete(struct warp *w, u32 site, u32 lane, struct block *whose, u64 *object, u32 bytes, u32 phase);
void mbarrier_start(struct block *b);
void mbarrier_release(struct block *b);

/* Reads the operand that a wgmma descriptor describes: `rows` rows of `words` 32-bit words along k (wgmma_operand.c). */
void wgmma_operand(struct warp *w, u32 site, u64 descriptor, u32 rows, u32 words, int by_columns, u32 *out);
/* Under a sanitizer: a warp begins to read `rows` rows of an operand, from row `first` on. */
void wgmma_watch_operand(struct warp *w, u32 site, u64 descriptor, u32 first, u32 rows, u32 words, int by_columns);

#endif
