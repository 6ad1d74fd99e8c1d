/* setmaxnreg: warps release registers, and others take them (PTX ISA, "setmaxnreg"). The emulator has no registers that could
 * run out, so it only keeps the numbers: the warps of a block together never have more than its launch allocated. A warp that
 * asks for more waits until other warps have released enough, as on a GPU. */

#include "emu.h"

static u32 registers_of(const struct warp *w) { return w->registers ? w->registers : w->block->launch->kernel->registers; }

/* Registers per thread that the other warps leave to this one. */
static u32 left_for(const struct warp *w) {
    const struct block *b = w->block;
    u32 taken = 0;
    for (u32 i = 0; i < b->warp_count; i++)
        if (i != w->index && b->state[i] != WARP_DONE) taken += registers_of(&b->warps[i]);
    return b->launch->kernel->registers * b->warp_count - taken;
}

void rt_move_registers(struct warp *w, u32 site, u32 count, int more) {
    struct block *b = w->block;
    const u32 lane = lowest_lane(w->live), now = registers_of(w);
    if (!b->launch->kernel->max_threads) return; /* ptxas ignores the instruction, and says so */
    if (more ? count < now : count > now)
        finding(w, site, lane, "sync", "setmaxnreg", "how:%s\ncount=%u\nnow=%u", more ? "inc" : "dec", count, now);
    while (more && count > left_for(w)) {
        w->asked_in_vain = 1;
        if (++b->asked_in_vain > VAIN_MAXIMUM)
            rt_fault(w, site, lane, cudaErrorLaunchTimeout, "deadlock_registers", "count=%u\nleft=%u\nregisters=%u\nwarps=%u", count, left_for(w), b->launch->kernel->registers, b->warp_count);
        rt_nanosleep(w, 0);
    }
    w->registers = count;
    makes_progress(b);
}
