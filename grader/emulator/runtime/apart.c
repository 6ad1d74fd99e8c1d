/* Lanes of a warp that wait for other lanes of it.
 *
 * The slow form runs the lowest-numbered pending block, so a lane that spins until another lane of its warp releases a
 * lock would spin for ever: the other is always behind it. On a GPU each lane goes on in the end (since compute
 * capability 7.0). Here, in functions with loops in which lanes may wait (analysis/waiting.py), lanes that have gone
 * round such a loop PATIENCE times are `waiting`: the others' turn comes, until nobody else can go on. Then all may try
 * again, after the block's other warps.
 *
 * Lanes go on so to the end of the divided region, where the fast form takes over when all have come. What the others wait
 * for may lie behind it: when the turn has come round TURNS_IN_REGION times, those who are there leave the region without
 * the rest, and the slow form keeps the warp to its end. They do not where they could only meet the whole warp.
 *
 * A lane that comes to a barrier or a warp function is held there while lanes that take part have waited and are not
 * there yet. When all that is left is held, the lanes go on as if nobody had been: sanitizers then tell what is wrong.
 *
 * All this is for the lanes that are in one call of a function. Lanes that have left a call in which others wait, or are yet
 * to make it, cannot go on; the report of such a loop says so (rt_wait). */

#include "emu.h"

#define TURNS_IN_REGION 4

int take_turns(struct warp *w, struct apart *a, u32 beyond) {
    if (w->block->launch->abort) leave_warp(w, WARP_DEAD);
    if (!a->waiting) {
        a->stuck = a->held;
        a->held = a->waited = 0;
        return 0;
    }
    if (beyond && ++a->turns > TURNS_IN_REGION) return 1;
    a->waiting = a->held = 0;
    yield_warp(w);
    return 0;
}

u32 pending_lanes(const struct trip *t) {
    u32 lanes = 0;
    for (u32 b = 0; b < t->function->blocks; b++) lanes |= t->pend[b];
    return lanes;
}

int must_hold(const struct trip *t, u32 missing) { return (missing & t->apart.waited & pending_lanes(t)) != 0; }
