/* Control flow between blocks: one loop for the fast forms of a function, one for its slow form.
 *
 * A form is a table of `struct way`, one for each block: the block's rows of threaded code, and where lanes go at its
 * end. So gcc need not compile control flow for each program. Only blocks that need more than rows (inner loops, calls)
 * are C, in the form's `code`, which runs such a block, or several if they jump to each other, and returns the last
 * one's number. */
#include "emu.h"
#include <alloca.h>

#define NOWHERE (~0u) /* in place of the block where lanes reconverge, if they do so only at the end */

static void run(struct warp *w, u8 *F, u32 m, const struct form *form, u32 begin, u32 end) {
    if (begin < end) run_rows(w, F, m, form->templates, form->rows + begin, form->rows + end);
}

static u32 condition(const u8 *F, const struct way *way) {
    const u32 value = *(const u32 *)(F + way->cell);
    return way->negated ? ~value : value;
}

static u32 chosen(const u8 *F, const struct form *form, const struct way *way) {
    const u32 index = *(const u32 *)(F + way->cell), last = way->otherwise - 1;
    return form->targets[way->taken + (index < last ? index : last)];
}

/* Makes the running lanes pending at the blocks that they choose; returns the lowest of these, or `first` if it is
 * lower. */
static u32 choose_blocks(const struct form *form, const struct way *way, const struct trip *t, u32 *pend, u32 first) {
    EACH_LANE(t->m) {
        const u32 block = form->targets[way->taken + t->index[l]];
        pend[block] |= 1u << l;
        if (block < first) first = block;
    }
    return first;
}

/* Called at the back edge of a loop. */
static void go_round(struct warp *w, u8 *F, const struct trip *t, const struct form *form, u32 from, u32 to) {
    w->fuel--;
    const struct edge e = {form, F, t->m, from, to, t->function->entry};
    if (form->ways[to].waits) {
        if (LIKELY(w->fuel % WARP_PATIENCE)) return;
        const u32 inside = t->function->entry ? ~0u : t->pend ? t->m | t->pending : t->m;
        rt_wait(w, e, inside);
    } else if (UNLIKELY(w->fuel == 0)) rt_poll(w, e);
}

/* ---- the slow form: diverged lanes ---------------------------------------------------------------------------- */

/* The first block from `next` on with pending lanes that are not in `away`; the number of blocks if there is none. */
static u32 next_due(const struct trip *t, u32 next, u32 away) {
    if (!(t->pending & ~away)) return t->function->blocks;
    while (next < t->function->blocks && (t->pend[next] & ~away) == 0) next++;
    return next;
}

/* Called when no other lanes can continue: the lanes at one barrier wait there for the other warps. */
static void wait_together(struct warp *w, struct trip *t, u32 blocks) {
    struct waiting *all = t->waits;
    u32 first = 0, lanes = 0;
    while (first + 1 < blocks && !all[first].lanes) first++;
    for (u32 b = first; b < blocks; b++) {
        if (!all[b].lanes || all[b].id != all[first].id) continue;
        lanes |= all[b].lanes, t->pend[b] |= all[b].lanes;
        all[b].lanes = 0;
    }
    rt_barrier(w, t->wait_site, all[first].id, all[first].threads, lanes, 0);
    t->waiting &= ~lanes, t->pending |= lanes;
}

void rt_wait_apart(struct warp *w, struct trip *t, u32 site, u32 block, u32 lanes, u32 id, u32 threads) {
    rt_divided_barrier(w, site, lanes);
    t->waits[block].lanes |= lanes, t->waits[block].id = id, t->waits[block].threads = threads;
    t->waiting |= lanes, t->wait_site = site;
}

int rt_stay(struct trip *t, u32 block, u32 m, u32 expected) {
    if (!must_hold(t, expected & ~m)) return 0;
    t->pend[block] |= m, t->pending |= m, t->apart.held |= m;
    return 1;
}

static void park(struct trip *t, u32 block, u32 lanes) {
    t->pend[block] |= lanes, t->pending |= lanes;
    if (block < t->next) t->next = block;
}

/* Takes the lanes at the lowest pending block and returns that block; or `stop` when all are there (t->m is then these
 * lanes), or the number of blocks when all have left. */
static u32 dispatch(struct warp *w, struct trip *t, u32 *stop) {
    const u32 blocks = t->function->blocks;
    for (;;) {
        const u32 away = t->apart.waiting | t->apart.held;
        const u32 at = next_due(t, t->next, away);
        if (UNLIKELY(away) && (at >= blocks || at == *stop)) {
            if (take_turns(w, &t->apart, at < blocks && !t->function->slow->ways[at].idle)) *stop = NOWHERE;
            else {
                t->next = 0;
                continue;
            }
        }
        if (at >= blocks) {
            if (!t->waiting) return blocks;
            wait_together(w, t, blocks);
            t->next = 0;
            continue;
        }
        /* The numbering of blocks ensures that no lane is pending past `stop` while others are before it. Only lanes
         * that wait at a barrier can be missing there; the warp then stays in the slow form until the function ends. */
        if (at == *stop && t->waiting) *stop = NOWHERE;
        const u32 now_away = t->apart.waiting | t->apart.held;
        t->m = t->pend[at] & ~now_away;
        if (at == *stop) return at;
        t->pend[at] &= ~t->m, t->pending &= ~t->m;
        t->next = next_due(t, at + 1, now_away);
        return at;
    }
}

/* The block where the lanes go from the end of block `at`; NOWHERE if it is other lanes' turn. */
static u32 leave_block(struct warp *w, u8 *F, struct trip *t, u32 at) {
    const struct function *f = t->function;
    const struct form *form = f->slow;
    const struct way *way = &form->ways[at];
    u32 to = way->taken;
    switch (way->kind) {
    case WAY_GOTO: break;
    case WAY_BRANCH: to = condition(F, way) ? way->taken : way->otherwise; break;
    case WAY_CHANGE: to = grader_change_of_host() + way->cell < way->stop ? way->taken : way->otherwise; break;
    case WAY_SWITCH: to = chosen(F, form, way); break;
    case WAY_PART: {
        const u32 go = condition(F, way) & t->m;
        if (go == t->m) break;
        to = way->otherwise;
        if (!go) break;
        /* The higher-numbered side waits. The lower one may continue immediately unless a lower block is pending. */
        const int jump = way->taken < way->otherwise;
        to = jump ? way->taken : way->otherwise;
        park(t, jump ? way->otherwise : way->taken, jump ? t->m & ~go : go);
        t->m = jump ? go : t->m & ~go;
        break;
    }
    case WAY_CHOOSE:
        t->next = choose_blocks(form, way, t, t->pend, t->next);
        t->pending |= t->m;
        return NOWHERE;
    case WAY_BARRIER: rt_wait_apart(w, t, way->site, to, t->m, way->otherwise, way->stop); return NOWHERE;
    case WAY_EXIT: t->left |= t->m; /* fall through */
    case WAY_RETURN:
        if (f->entry || way->kind == WAY_EXIT) lanes_exit(w, t->m);
        return NOWHERE;
    case WAY_ABSENT: __builtin_trap();
    }
    if (to <= at) {
        const struct way *header = &form->ways[to];
        go_round(w, F, t, form, at, to);
        if (header->waits && UNLIKELY(--t->apart.patience == 0)) {
            t->apart.patience = PATIENCE;
            t->apart.waiting |= t->m, t->apart.waited |= t->m;
            t->pend[to] |= t->m, t->pending |= t->m;
            return NOWHERE;
        }
    }
    return to;
}

/* Runs the lanes of `from`, which are in `pend`, whose lowest block is `next`, until all that have not left are at `stop`;
 * returns these. */
static u32 run_slow(struct warp *w, u8 *F, struct trip *from, u32 *pend, u32 next, u32 stop) {
    const struct function *f = from->function;
    struct trip t = {.function = f, .prm = from->prm, .pend = pend, .pending = from->m, .next = next, .apart.patience = PATIENCE};
    if (f->barriers) {
        const size_t bytes = (f->blocks + 1) * sizeof *t.waits;
        t.waits = memset(alloca(bytes), 0, bytes);
    }
    if (f->gathers) {
        t.gathering = __builtin_alloca_with_align(sizeof *t.gathering, 64 * 8);
        t.gathering->offered = t.gathering->complete = 0;
    }
    TRIP = &t;
    const struct form *form = f->slow;
    for (;;) {
        u32 at = dispatch(w, &t, &stop);
        if (at == f->blocks || at == stop) {
            from->left |= t.left;
            return at == stop ? t.m : 0;
        }
        for (;;) {
            const struct way *way = &form->ways[at];
            if (way->expected && UNLIKELY(t.apart.waited & ~t.m) && rt_stay(&t, at, t.m, way->expected)) break;
            if (way->asked) {
                run(w, F, t.m, form, way->rows, way->asked);
                t.m = gather_lanes(w, &t, at, way->meeting, way->call);
                if (!t.m) break;
            }
            run(w, F, t.m, form, way->asked ? way->asked : way->rows, way->end);
            if (way->code) {
                at = form->code(w, F, &t, at);
                if (!t.m) break;
            }
            const u32 to = leave_block(w, F, &t, at);
            if (to == NOWHERE) break;
            if (to >= t.next || to == stop || form->ways[to].kind == WAY_ABSENT) {
                park(&t, to, t.m);
                break;
            }
            at = to;
        }
    }
}

/* ---- the fast forms: all live lanes are at one place ------------------------------------------------------------------- */

void rt_depart(struct warp *w, u8 *F, struct trip *t, u32 block) {
    u32 pend[t->function->blocks + 1];
    memset(pend, 0, sizeof pend);
    pend[block] = t->m;
    run_slow(w, F, t, pend, block, NOWHERE);
    t->m = 0;
}

/* Called when lanes diverge at the end of a block; `go` are those that take the branch. Returns the block where the
 * remaining lanes continue. */
static u32 part(struct warp *w, u8 *F, const struct form *form, struct trip *t, const struct way *way, u32 go) {
    const struct function *f = t->function;
    const u32 stay = t->m & ~go;
    if (way->leaves) { /* the lanes of one side only leave */
        const u32 gone = way->leaves == 1 ? go : stay;
        const struct way *leave = &form->ways[way->leaves == 1 ? way->taken : way->otherwise];
        run(w, F, gone, form, leave->rows, leave->end);
        if (f->entry) lanes_exit(w, gone);
        t->m &= ~gone;
        return way->leaves == 1 ? way->otherwise : way->taken;
    }
    run(w, F, t->m, form, way->end, way->spilled);
    u32 pend[f->blocks + 1], next;
    memset(pend, 0, sizeof pend);
    if (way->kind == WAY_CHOOSE) next = choose_blocks(form, way, t, pend, ~0u);
    else {
        pend[way->taken] = go, pend[way->otherwise] = stay;
        next = way->taken < way->otherwise ? way->taken : way->otherwise;
    }
    t->m = run_slow(w, F, t, pend, next, way->stop);
    if (way->stop == NOWHERE) t->m = 0;
    if (t->m) run(w, F, t->m, form, way->spilled, way->reloaded);
    return way->stop;
}

static u32 leave_together(struct warp *w, u8 *F, struct trip *t, const struct form *form, u32 at) {
    const struct way *way = &form->ways[at];
    switch (way->kind) {
    case WAY_BRANCH: return condition(F, way) ? way->taken : way->otherwise;
    case WAY_SWITCH: return chosen(F, form, way);
    case WAY_PART: {
        const u32 go = condition(F, way) & t->m;
        return go == t->m ? way->taken : go ? part(w, F, form, t, way, go) : way->otherwise;
    }
    case WAY_CHOOSE: return part(w, F, form, t, way, 0);
    case WAY_EXIT: t->left |= t->m; /* fall through */
    case WAY_RETURN:
        if (t->function->entry || way->kind == WAY_EXIT) lanes_exit(w, t->m);
        t->m = 0;
        return NOWHERE;
    }
    return way->taken;
}

static void run_fast(struct warp *w, u8 *F, struct trip *t, const struct form *form) {
    for (u32 at = 0;;) {
        const struct way *way = &form->ways[at];
        run(w, F, t->m, form, way->rows, way->end);
        if (way->code) {
            at = form->code(w, F, t, at);
            if (!t->m) return;
        }
        const u32 to = leave_together(w, F, t, form, at);
        if (!t->m) return;
        if (to <= at) go_round(w, F, t, form, at, to);
        at = to;
    }
}

u32 rt_run(struct warp *w, u32 m, u32 **prm, const struct function *f) {
    u8 *F = __builtin_alloca_with_align(f->frame_bytes, 64 * 8);
    const u32 local_base = f->local_bytes ? take_local(w, m, f->local_bytes) : w->local_top;
    if (f->local_bytes && UNLIKELY(is_watched(w->block))) shadow_local_start(w, m, local_base, f->local_bytes);
    *(u32 *)F = local_base, *(u32 ***)(F + 8) = prm;
    struct trip t = {.function = f, .prm = prm, .m = m};
    if (f->general) run_fast(w, F, &t, w->linear ? f->linear : f->general);
    else rt_depart(w, F, &t, 0);
    w->local_top = local_base;
    return m & ~t.left;
}
