/* griddepcontrol: a kernel that may begin before the one before it in its stream has ended (PTX ISA, "griddepcontrol"; CUDA
 * programming guide, "Programmatic Dependent Launch").
 *
 * Asynchronous means as late as it may be here too. The launch of a kernel that triggers its dependents is held until the
 * program does something else. If that is a launch with programmatic stream serialization in the same stream, the two
 * overlap: the warps of the first stop where they trigger, the second runs until its warps wait for the first, or to its
 * end, and only then the first continues. So what the first writes after its trigger is never there for a second one that
 * does not wait. Otherwise the held launch just runs (work.c).
 *
 * A grid with more blocks than run at once is not stopped: its last blocks trigger when most others have ended. */

#include "emu.h"

void rt_trigger_dependents(struct warp *w) {
    const struct launch *l = w->block->launch;
    while (l->work.stops_at_trigger) rt_nanosleep(w, 0);
}

void rt_wait_for_prerequisite(struct warp *w) {
    const struct launch *l = w->block->launch;
    while (l->work.prerequisite) rt_nanosleep(w, 0);
    w->has_waited = 1;
    w->block->waited = w->block->stamp;
}
