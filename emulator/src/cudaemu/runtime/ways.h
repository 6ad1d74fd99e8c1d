/* Functions, their forms, and the ways from block to block, as tables that the translator writes and ways.c reads. */
#ifndef WAYS_H
#define WAYS_H

#include "warp.h"

/* ---- threaded code (translate/template.py) ------------------------------------------------------------------------ */

/* Runs the rows of operands k … end: offsets in the frame F, sites and literals, in the template's order. */
typedef void template_function(struct warp *w, u8 *F, u32 m, const u32 *k, const u32 *end);
/* Runs code … end. Each run of one template consists of its number, its length in words, and its rows. */
void run_rows(struct warp *w, u8 *F, u32 m, template_function *const *templates, const u32 *code, const u32 *end);

/* ---- from block to block (ways.c) ---------------------------------------------------------------------------------- */

enum { DECIDED_BY_REGISTERS = 1, DECIDED_BY_MEMORY = 2 };
enum way_kind { WAY_GOTO, WAY_BRANCH, WAY_CHANGE, WAY_PART, WAY_SWITCH, WAY_CHOOSE, WAY_BARRIER, WAY_RETURN, WAY_EXIT, WAY_ABSENT };

/* A block, and where lanes go at its end (way_kind, in this order): to one block; to one of two, together, by the change to try (`cell` plus its number is less than `stop`), or separately; to
 * one of many, together or separately; to a barrier; out of the function, or of the kernel. A slow form lacks blocks that
 * divided warps never run (WAY_ABSENT). */
struct way {
    u32 rows, end;         /* the block's threaded code */
    u32 spilled, reloaded; /* ends of the rows that run after it: when lanes diverge, and when they have reconverged */
    u32 taken, otherwise;  /* blocks; of a switch, the index of its first target and their number; of a barrier, the next block and its number */
    u32 stop;              /* the block where diverged lanes reconverge; of a barrier, its threads; of a change, see ways.c */
    u32 cell;              /* the condition's place in the frame */
    u32 site;              /* of the barrier, or of the loop that this block ends */
    u32 expected;          /* lanes that meet before this block */
    u32 asked;             /* end of the first rows, which store the lanes' values for a warp function at which they gather; or 0 */
    u32 call, meeting;     /* the number and the site of that warp function */
    u8 kind, negated;
    u8 code;   /* the block is C */
    u8 waits;  /* header of a loop in which lanes may wait for others */
    u8 idle;   /* nothing that lanes do from here to where the warp meets is visible to other lanes */
    u8 leaves; /* 1 if the lanes that take the branch only leave, 2 if the other lanes do */
    u8 decision, cell_count; /* of a loop's header: DECIDED_BY_…, and how many values decide whether the loop ends */
    u32 cells;               /* the first of them in the form's cells */
};

struct trip;
struct form {
    const struct way *ways;
    const u32 *rows;
    template_function *const *templates;
    const u32 *cells; /* places of deciding values in the frame: offset << 3 | enum cell_kind */
    const u16 *targets;                                              /* of switches */
    u32 (*code)(struct warp *w, u8 *F, struct trip *t, u32 at); /* runs C from block `at`; returns the last block that it ran */
};
struct function {
    u32 blocks, frame_bytes, local_bytes;
    u8 entry, barriers, gathers; /* it is a kernel; its slow form has barriers; it has warp functions whose lanes arrive separately */
    const struct form *linear, *general, *slow; /* NULL if there is none */
};

/* Lanes of a divided warp that wait at barriers, by the block at which they continue. */
struct waiting { u32 id, threads, lanes; };

/* The state of a warp in a form. The members from `pend` on are for slow forms only. */
struct trip {
    const struct function *function;
    u32 **prm;  /* arguments and results */
    u32 m;      /* the lanes that run */
    u32 left;   /* lanes that have left the kernel */
    u32 *pend;  /* by block, the pending lanes */
    u32 pending; /* all of them */
    u32 next;   /* no lanes are pending before this block */
    u32 waiting, wait_site;
    struct waiting *waits;
    struct apart apart;
    struct gathering *gathering;
    u32 index[32] __attribute__((aligned(64))); /* WAY_CHOOSE: each lane's target */
};

/* Runs a function with the lanes m; returns those that have not left the kernel. */
u32 rt_run(struct warp *w, u32 m, u32 **prm, const struct function *f);
/* Leaves the fast form at the start of a block, for the rest of the function. */
void rt_depart(struct warp *w, u8 *F, struct trip *t, u32 block);
/* Slow form: makes lanes wait at a barrier until the others have arrived, or have all left. */
void rt_wait_apart(struct warp *w, struct trip *t, u32 site, u32 block, u32 lanes, u32 id, u32 threads);
/* Slow form: holds lanes where lanes meet if other participants have waited elsewhere and not arrived; returns whether it does. */
int rt_stay(struct trip *t, u32 block, u32 m, u32 expected);
/* The trip of a slow form, through the pointer in its frame. */
#define TRIP (*(struct trip **)(F + 16))

#endif
