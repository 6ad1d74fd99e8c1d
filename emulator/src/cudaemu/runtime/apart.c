/* Lanes of a warp that wait for other lanes of the same warp.
 *
 * The slow form runs the lowest-numbered pending block, so a lane that spins until another lane of its warp releases a
 * lock would spin forever, because the other lane is at a higher block. On a GPU every lane eventually makes progress
 * (since compute capability 7.0). Here, in functions with loops in which lanes may wait (analysis/waiting.py), lanes
 * that have iterated such a loop PATIENCE times are `waiting`: the other lanes run until none of them can continue. Then
 * the block's other warps run, and after that all lanes may try again.
 *
 * Lanes run this way until all have reached the end of the divided region, where the fast form takes over. But lanes may
 * wait for something that others do only after the region. So after TURNS_IN_REGION rounds the lanes at the region's end
 * leave it without the rest, and the warp stays in the slow form until the function ends. They do not leave if nothing
 * that they would do before the whole warp meets again is visible to other lanes.
 *
 * A lane that reaches a barrier or a warp function is held there while another participant, which has waited in a loop,
 * has not arrived. When only held lanes are left, they continue as if no lane were missing, and sanitizers report what
 * is wrong.
 *
 * All this applies to lanes in the same call of a function. Lanes that have left a call in which others wait, or have
 * not made it yet, cannot continue; the report of such a loop says so (rt_wait). */

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

int must_hold(const struct trip *t, u32 missing) { return (missing & t->apart.waited & t->pending) != 0; }
