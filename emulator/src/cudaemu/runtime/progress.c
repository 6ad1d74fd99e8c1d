/* Loops that never end, found long before the time limit, and the name of the loop that does not.
 *
 * A warp that has gone round loops for a long time is watched: its next back edges all come here, because its fuel is
 * refilled to 1. From time to time it is watched again, twice as long each time, for an eighth of its back edges in all.
 *
 * While it is watched, `candidate` is the innermost loop that it has not left: a back edge of a loop around the candidate,
 * or behind it, replaces it. A loop inside, however long it takes, does not.
 *
 * The values that decide whether the candidate ends (analysis/progress.py) are hashed at each of its back edges and compared
 * with an earlier pass (Brent's algorithm for cycles). If they come from registers alone and are the same again, the loop
 * never ends. If memory decides too, it never ends if all warps of the launch are in such loops, which write nothing, and
 * nobody else can write: the host's threads have all waited since the warps last looked, and nothing else runs or could. */

#include "schedule.h"

#define POLLS_BEFORE_WATCH 4u
#define LONG_WATCH (1u << 30)
#define PASSES 256u /* of each warp in a round of is_hopeless */

u32 own_threads;

/* ---- the state that decides ------------------------------------------------------------------------------------------ */

enum cell_kind { CELL_PREDICATE, CELL_4, CELL_8, CELL_16, CELL_ROW_4, CELL_ROW_8 }; /* CELL_… of translate/control.py */

static u64 mix(u64 h, u64 x) {
    h = (h ^ x) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 29;
}

static u64 state_of(const u8 *F, u32 m, const struct form *form, const struct way *header) {
    u64 h = mix(1, m);
    for (u32 i = 0; i < header->cell_count; i++) {
        const u32 cell = form->cells[header->cells + i];
        const u8 *p = F + (cell >> 3);
        switch (cell & 7) {
        case CELL_PREDICATE: h = mix(h, *(const u32 *)p & m); break;
        case CELL_4: h = mix(h, *(const u32 *)p); break;
        case CELL_16: h = mix(h, *(const u64 *)(p + 8)); /* the stride */ /* fall through */
        case CELL_8: h = mix(h, *(const u64 *)p); break;
        default:
            for (u32 rest = m; rest; rest &= rest - 1) {
                const u32 l = (u32)__builtin_ctz(rest);
                h = mix(h, (cell & 7) == CELL_ROW_4 ? ((const u32 *)p)[l] : ((const u64 *)p)[l]);
            }
        }
    }
    return h;
}

/* ---- the loop that a warp does not leave ------------------------------------------------------------------------------- */

static int is_within(u32 header, u32 latch, const struct candidate *c) { return header >= c->header && latch <= c->latch; }

static void note(struct warp *w, const struct edge *e) {
    struct candidate *c = &w->candidate;
    const struct way *header = &e->form->ways[e->to];
    if (c->form && (e->F < c->F || (e->F == c->F && e->to != c->header && is_within(e->to, e->from, c)))) return; /* in a loop or a function inside */
    if (c->form != e->form || e->F != c->F || e->to != c->header) {
        const u32 events = c->events + 1;
        *c = (struct candidate){.form = e->form, .F = e->F, .header = e->to, .latch = e->from, .power = 1, .site = e->form->ways[e->from].site, .events = events, .in_kernel = e->in_kernel};
        c->state = state_of(e->F, e->m, e->form, header);
        return;
    }
    if (!header->decision) return;
    const u64 state = state_of(e->F, e->m, e->form, header);
    c->passes++;
    if (state == c->state) {
        c->confirmed++;
        if (header->decision == DECIDED_BY_REGISTERS)
            rt_fault(w, c->site, lowest_lane(e->m), cudaErrorLaunchTimeout, "loop_never_ends", "how:unchanged");
    } else if (c->passes >= c->power)
        c->state = state, c->power *= 2, c->passes = 0, c->confirmed = 0, c->events++;
}

int progress_note(struct warp *w, const struct edge *e) {
    if (!w->watched_edges) return 1;
    note(w, e);
    w->watched_edges--;
    if (w->watched_edges) w->fuel = 1;
    return w->watched_edges % w->block->launch->fuel == 0;
}

/* Called at each full poll: begins to watch the warp when its polls reach a power of two, or when half of the time is up. */
void progress_poll(struct warp *w, int is_late) {
    if (w->watched_edges) {
        w->fuel = 1;
        return;
    }
    w->polls++;
    const int is_due = w->polls >= POLLS_BEFORE_WATCH && !(w->polls & (w->polls - 1));
    if (!is_due && (!is_late || w->candidate.form)) return;
    w->watched_edges = (w->polls + 7) / 8 * w->block->launch->fuel;
    w->candidate.form = NULL;
    w->fuel = 1;
}

u32 progress_site(const struct warp *w, u32 site) { return w->candidate.form ? w->candidate.site : site; }

/* ---- warps that all wait ------------------------------------------------------------------------------------------------ */

static void start_round(const struct worker *k) {
    for (u32 i = 0; i < k->active_count; i++)
        for (u32 j = 0; j < k->active[i]->warp_count; j++) {
            struct warp *w = &k->active[i]->warps[j];
            w->candidate.confirmed = 0;
            if (k->active[i]->state[j] != WARP_READY) continue;
            if (w->watched_edges < LONG_WATCH) w->watched_edges += LONG_WATCH; /* a multiple of FUEL: full polls keep their rhythm */
            w->fuel = 1;
        }
}

/* Called between turns when all resident blocks of the worker spin. A change that any worker sees begins a new epoch of the
 * launch. When every worker has completed two rounds in one epoch, the second of them has seen all that the others wrote, and
 * no warp can write any more. */
int is_hopeless(struct worker *k, struct launch *l) {
    u32 ready = 0, events = 0;
    int confirmed = !k->more;
    struct warp *first = NULL;
    for (u32 i = 0; i < k->active_count; i++)
        for (u32 j = 0; j < k->active[i]->warp_count; j++) {
            struct warp *w = &k->active[i]->warps[j];
            const struct candidate *c = &w->candidate;
            events += c->events;
            if (k->active[i]->state[j] != WARP_READY) continue;
            ready++;
            if (!first) first = w;
            confirmed &= c->confirmed >= PASSES && c->form->ways[c->header].decision && c->in_kernel;
        }
    if (ready != k->ready || events != k->events || !k->is_watching) {
        k->ready = ready, k->events = events, k->is_watching = 1;
        __atomic_add_fetch(&l->epoch, 1, __ATOMIC_SEQ_CST);
        start_round(k);
        return 0;
    }
    if (!confirmed || !first) return 0;
    const u32 epoch = __atomic_load_n(&l->epoch, __ATOMIC_SEQ_CST);
    if (k->completed != epoch) {
        k->completed = epoch;
        start_round(k);
        return 0;
    }
    __atomic_store_n(&k->proved, epoch, __ATOMIC_SEQ_CST);
    u32 waits;
    if (!workers_proved(l, epoch) || launches_under_way != l || l->next_under_way || !all_wait_for_one(&waits)) return 0;
    const u64 quiet = (u64)waits << 32 | epoch;
    if (__atomic_load_n(&l->quiet, __ATOMIC_SEQ_CST) != quiet) { /* what the host wrote before it waited, the rounds of the next epoch see */
        u32 now = epoch;
        if (__atomic_compare_exchange_n(&l->epoch, &now, epoch + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) __atomic_store_n(&l->quiet, quiet + 1, __ATOMIC_SEQ_CST);
        return 0;
    }
    report_fault(first, first->candidate.site, lowest_lane(first->live), cudaErrorLaunchTimeout, "loop_never_ends", "how:waits");
    return 1;
}
