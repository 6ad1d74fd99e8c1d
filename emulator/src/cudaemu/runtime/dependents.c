/* griddepcontrol: a kernel that may begin before its predecessor in the stream has ended (PTX ISA, "griddepcontrol"; CUDA
 * programming guide, "Programmatic Dependent Launch").
 *
 * Here, too, the emulator is as late as the specification allows. The launch of a kernel that triggers its dependents is
 * held until the program submits other work or waits. If that work is a launch with programmatic stream serialization in
 * the same stream, the two kernels overlap: the warps of the first stop where they trigger; the second runs until its
 * warps wait for the first, or to its end; only then the first continues. So a second kernel that does not wait never
 * sees what the first writes after its trigger. In all other cases the held launch simply runs (work.c).
 *
 * A grid with more than AT_ONCE blocks (launch.c) is not stopped, because its last blocks trigger when most others have
 * ended. */

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
