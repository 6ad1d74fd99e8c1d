/* Declarations that the files that run blocks share: blocks.c, barriers.c, schedule.c, workers.c. */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include "async.h"

#define POLLS_BEFORE_COMPANY 64 /* polls of each warp until the worker starts another block */

/* GRADER_EMULATOR_SCHEDULE: 0 lockstep, 1 reverse, 2 random with this seed. */
extern int schedule_kind;
extern u64 schedule_seed;
extern u64 time_limit_ns; /* of a kernel, on `limit_clock`; 0 without limit */

/* blocks.c */
u8 *map_pages(u64 bytes);
struct block *take_block(struct worker *k);
void start_block(struct worker *k, struct block *b, struct launch *l, u64 index);
void release_block_memory(struct worker *k);

/* barriers.c */
u32 barrier_expected(struct block *b, u32 id); /* threads */
void barriers_after_exit(struct block *b);     /* releases threads that waited only for threads that have exited */

/* schedule.c */
void prepare_worker(struct worker *k, struct launch *l);
/* Runs the worker's share of a launch. Returns 1 at its end, or, unless `stay`, 0 when all its blocks spin. */
int run_blocks(struct worker *k, struct launch *l, int stay);

/* progress.c */
/* Notes a back edge of a watched warp. Returns whether it is time for a full poll. */
int progress_note(struct warp *w, const struct edge *e);
void progress_poll(struct warp *w, int is_late);
u32 progress_site(const struct warp *w, u32 site); /* of the loop that the warp does not leave; `site` if that is unknown */
int is_hopeless(struct worker *k, struct launch *l); /* after a report, if no warp of the launch can ever continue */

/* workers.c */
int workers_proved(const struct launch *l, u32 epoch); /* whether all workers of the launch have proved it hopeless */
void say_nowhere(struct launch *l); /* tells the thread that waits for the pool that the launch may get nowhere */

#endif
