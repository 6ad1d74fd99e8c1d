/* Decides which accesses of a launch are ordered by its barriers, fences and atomics (--sanitize race).
 *
 * A block's execution is divided into phases, each with a stamp; stamps increase through the whole run, so they are
 * also a clock. A barrier begins a new phase and a new epoch of the block. Accesses in two epochs of one block are
 * ordered if the warp that makes the second access has waited at a barrier since the first one. Any barrier counts, even
 * a named one for only some warps, or a barrier object. Blocks of a cluster are ordered by its barrier and by barrier
 * objects.
 *
 * Between blocks, and between warps that use no barrier, order requires a fence, then an atomic or volatile access, and
 * then an atomic or volatile access on the other side. A fence ends a segment (a run of phases); the next atomic or
 * volatile access of the block releases it, and `released` is the stamp of that moment. An access of a released segment
 * comes before everything that another block does after an atomic or volatile access later than the release. The second
 * access need not read what the first one wrote, so every correct program counts as ordered here, and some wrong ones
 * do too. */

#include "emu.h"
#include <stdlib.h>

struct phase { u64 launch; u32 block, epoch, segment; };
struct segment { u32 released, next; }; /* next: the next fenced segment of the block that waits for its release */

#define PHASES_MAXIMUM (1u << 24)

static struct phase *phases; /* of this launch; the index is stamp - first */
static struct segment *segments;
static u32 first = 1, phase_count, phase_capacity, segment_count, segment_capacity;
static int fences; /* a thread of this launch has executed a fence */

/* Forgets the phases of earlier launches, unless one is still under way: races with a dependent launch are detected
 * (dependents.c). */
void order_start_launch(const struct launch *l) {
    if (!l->is_alone) return;
    first += phase_count;
    phase_count = segment_count = 0;
    fences = 0;
}

static u32 new_segment(void) {
    MAKE_ROOM(segments, segment_count, segment_capacity);
    segments[segment_count] = (struct segment){0, NO_SEGMENT};
    return segment_count++;
}

/* Begins a phase. If the launch has too many, the block gets stamp 0, which is never compared. */
static void new_phase(struct block *b) {
    if (phase_count == PHASES_MAXIMUM) {
        if (b->stamp) finding(NULL, ~0u, 0, "race", "too_many_barriers", "limit=%u", PHASES_MAXIMUM);
        b->stamp = 0;
        return;
    }
    MAKE_ROOM(phases, phase_count, phase_capacity);
    phases[phase_count] = (struct phase){b->launch->id, (u32)b->index, b->epoch, b->segment};
    b->stamp = first + phase_count++;
}

void order_start_block(struct block *b) {
    b->epoch = 1, b->stamp = 1, b->acquired = 0, b->acquiring = 0, b->fenced_segments = NO_SEGMENT, b->cluster_synced = 0;
    b->segment = new_segment();
    new_phase(b);
}

void order_barrier(struct block *b) {
    b->epoch++;
    new_phase(b);
}

void order_fence(struct block *b) {
    fences = 1;
    segments[b->segment].next = b->fenced_segments;
    b->fenced_segments = b->segment;
    b->segment = new_segment();
    new_phase(b);
}

/* Called before an atomic or volatile access, or one with release or acquire semantics. */
void order_strong_access(struct block *b) {
    if (b->fenced_segments != NO_SEGMENT) {
        new_phase(b);
        for (u32 s = b->fenced_segments; s != NO_SEGMENT; s = segments[s].next) segments[s].released = b->stamp;
        b->fenced_segments = NO_SEGMENT;
    }
    b->acquiring = 1; /* takes effect no later than at the block's next access */
}

void order_access(struct block *b) {
    if (!b->acquiring) return;
    b->acquired = first + phase_count;
    b->acquiring = 0;
}

int order_uses_fences(void) { return fences; }

u32 order_next(void) { return first + phase_count; }

static int is_of_cluster(const struct block *b, u32 index) {
    for (u32 i = 0; b->cluster && i < b->cluster->size; i++)
        if ((u32)b->cluster->blocks[i]->index == index) return 1;
    return 0;
}

/* Whether the warp's launch overlaps with another one for which the warp has not waited. */
static int overlaps(const struct warp *w, u64 other) {
    const struct block *b = w->block;
    const struct launch *before = (const struct launch *)b->launch->work.prerequisite, *after = (const struct launch *)b->launch->work.dependent;
    if (after && after->id == other) return after->module == b->launch->module;
    return before && before->id == other && before->module == b->launch->module && !w->has_waited && !(b->waited && w->synced > b->waited);
}

enum order order_of(const struct warp *w, u32 stamp, u64 *other_block) {
    const struct block *b = w->block;
    if (stamp < first) return ORDER_BEFORE; /* an earlier launch, or never */
    const struct phase *p = &phases[stamp - first];
    if (p->launch != b->launch->id) {
        *other_block = OTHER_LAUNCH;
        return overlaps(w, p->launch) ? ORDER_NONE_IN_GRID : ORDER_BEFORE;
    }
    *other_block = p->block;
    int same = p->block == (u32)b->index;
    if (same && p->epoch != b->epoch && w->synced > stamp) return ORDER_BEFORE;
    if (!same && stamp < b->cluster_synced && is_of_cluster(b, p->block)) return ORDER_BEFORE;
    u32 released = segments[p->segment].released;
    if (released && b->acquired >= released) return ORDER_BEFORE;
    return same ? ORDER_NONE_IN_BLOCK : ORDER_NONE_IN_GRID;
}
