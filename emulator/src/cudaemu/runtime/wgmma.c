/* wgmma.mma_async: products of a warpgroup, four warps from a multiple of four on (PTX ISA, "Asynchronous Warpgroup Level
 * Matrix Instructions").
 *
 * A product takes effect as late as it may: when one of the four warps waits for its group, after all four have issued it.
 * Only then are the operands in shared memory read, and only then do that warp's registers change. So an operand that is
 * overwritten too early, or sums that are read too early, give a wrong result. Operands in registers are read at the issue.
 *
 * The translator numbers the tuples of registers that hold sums. While products of a tuple are in flight, its sums are
 * kept here, and further products are added to them, whatever the registers hold. */

#include "async.h"
#include "counters.h"
#include "tensor.h"
#include <stdlib.h>

struct product {
    struct mma how;
    u64 a, b;
    u32 flags, sums, site, issued; /* issued: a bit for each warp */
    u32 *rows; /* of A, from registers; or NULL */
};

/* A product that a warp has issued and not waited for. */
struct issue { u32 number, site, sums, reads; int from_registers; };

struct sums {
    u32 registers;
    u32 last[WARPGROUP]; /* products that the warp had issued when it issued this tuple's last one; 0 if none is in flight */
    u32 *of[WARPGROUP];
};

struct wgmma {
    struct product *products; /* issued by some warp and not executed; products[0] is number `executed` */
    u32 count, capacity, executed;
    struct sums *sums;
    u32 sums_count;
    u32 issued[WARPGROUP], committed[WARPGROUP];
    u32 *commits[WARPGROUP]; /* products issued before each commit */
    u32 commit_capacity[WARPGROUP];
    struct issue *issues[WARPGROUP]; /* the oldest first */
    u32 issue_count[WARPGROUP], issue_capacity[WARPGROUP];
    u8 is_fenced[WARPGROUP]; /* the warp has executed wgmma.fence */
};

static struct wgmma *wgmma_of(struct warp *w) {
    struct block *b = w->block;
    if (!b->wgmma) b->wgmma = calloc((b->worker->capacity_warps + WARPGROUP - 1) / WARPGROUP, sizeof *b->wgmma);
    return &b->wgmma[w->index / WARPGROUP];
}

void wgmma_release(struct block *b) {
    for (u32 g = 0; b->wgmma && g < (b->worker->capacity_warps + WARPGROUP - 1) / WARPGROUP; g++) {
        struct wgmma *q = &b->wgmma[g];
        for (u32 i = 0; i < q->count; i++) free(q->products[i].rows);
        for (u32 i = 0; i < q->sums_count * WARPGROUP; i++) free(q->sums[i / WARPGROUP].of[i % WARPGROUP]);
        for (u32 i = 0; i < WARPGROUP; i++) free(q->commits[i]), free(q->issues[i]);
        free(q->products), free(q->sums);
    }
    free(b->wgmma);
    b->wgmma = NULL;
}

/* Products that no warp of the previous block waited for are discarded. */
void wgmma_start(struct block *b) {
    if (b->wgmma) wgmma_release(b);
}

/* ---- issue ---------------------------------------------------------------------------------------------------------- */

u32 *rt_wgmma_sums(struct warp *w, u32 sums, u32 registers) {
    struct wgmma *q = wgmma_of(w);
    const u32 i = w->index % WARPGROUP;
    if (sums >= q->sums_count) {
        q->sums = realloc(q->sums, (sums + 1) * sizeof *q->sums);
        memset(q->sums + q->sums_count, 0, (sums + 1 - q->sums_count) * sizeof *q->sums);
        q->sums_count = sums + 1;
    }
    struct sums *s = &q->sums[sums];
    if (!s->of[i]) s->of[i] = aligned_alloc(64, registers * 32 * sizeof(u32)), s->registers = registers;
    return s->last[i] ? NULL : s->of[i];
}

static int same_product(const struct product *p, struct mma how, u32 sums, const struct wgmma_operands *o) {
    return memcmp(&p->how, &how, sizeof how) == 0 && p->sums == sums && p->b == o->b && p->flags == o->how && !p->rows == !o->registers && (o->registers || p->a == o->a);
}

/* Records a warp's part in a product and, under a sanitizer, what it reads of shared memory: its own 16 rows of A, and B. */
static void record_issue(struct warp *w, struct wgmma *q, u32 site, struct mma how, u32 sums, const struct wgmma_operands *o) {
    const u32 i = w->index % WARPGROUP, words = how.k * element_bits(how.a) / 32;
    MAKE_ROOM(q->issues[i], q->issue_count[i], q->issue_capacity[i]);
    struct issue *n = &q->issues[i][q->issue_count[i]++];
    *n = (struct issue){q->issued[i], site, sums, 0, o->registers != NULL};
    if (!q->is_fenced[i] && first_time(w->block->launch->module->info, site, ~5u))
        finding(w, site, lowest_lane(w->live), "sync", "wgmma_unfenced", "of:wgmma");
    if (!is_watched(w->block)) return;
    w->step++;
    n->reads = read_begins(w, site, lowest_lane(w->live));
    if (!o->registers) wgmma_watch_operand(w, site, o->a, ROWS * i, ROWS, words, o->how & WGMMA_A_BY_COLUMNS);
    wgmma_watch_operand(w, site, o->b, 0, how.n, words, o->how & WGMMA_B_BY_COLUMNS);
}

static void end_issues(struct warp *w, struct wgmma *q, u32 due) {
    const u32 i = w->index % WARPGROUP;
    u32 done = 0;
    for (; done < q->issue_count[i] && (i32)(due - q->issues[i][done].number) >= 0; done++)
        if (q->issues[i][done].reads) read_ends(w, q->issues[i][done].reads);
    q->issue_count[i] -= done;
    memmove(q->issues[i], q->issues[i] + done, q->issue_count[i] * sizeof *q->issues[i]);
}

void rt_wgmma(struct warp *w, u32 site, struct mma how, u32 sums, struct wgmma_operands o) {
    struct wgmma *q = wgmma_of(w);
    const u32 i = w->index % WARPGROUP, number = q->issued[i]++ - q->executed;
    const u32 row_words = how.k * element_bits(how.a) / 32;
    makes_progress(w->block);
    count_async(w, ASYNC_PRODUCTS, 1), count_async(w, ASYNC_PRODUCTS_FROM_REGISTERS, o.registers != NULL);
    q->sums[sums].last[i] = q->issued[i];
    record_issue(w, q, site, how, sums, &o);
    if (number == q->count) {
        MAKE_ROOM(q->products, q->count, q->capacity);
        q->products[q->count++] = (struct product){how, o.a, o.b, o.how, sums, site, 0, o.registers ? malloc(WARPGROUP * ROWS * row_words * sizeof(u32)) : NULL};
    }
    struct product *p = &q->products[number];
    if (!same_product(p, how, sums, &o))
        rt_fault(w, site, lowest_lane(w->live), cudaErrorIllegalInstruction, "wgmma_differs", "of:wgmma");
    if (o.registers) rows_of_fragment(o.registers, p->rows + i * ROWS * row_words);
    p->issued |= 1u << i;
}

void rt_wgmma_fence(struct warp *w) { wgmma_of(w)->is_fenced[w->index % WARPGROUP] = 1; }

void rt_wgmma_unfenced(struct warp *w, u32 site, u32 writer) {
    const struct module_info *info = w->block->launch->module->info;
    if (first_time(info, site, ~6u))
        finding(w, site, lowest_lane(w->live), "sync", "wgmma_registers", "line_of=%u", info->sites[writer].line);
}

void rt_wgmma_touched(struct warp *w, u32 site, u32 product, int how) {
    static const char *const did[] = {"read_sums", "wrote_sums", "wrote_a"};
    const struct wgmma *q = wgmma_of(w);
    const struct module_info *info = w->block->launch->module->info;
    const u32 i = w->index % WARPGROUP, line = info->sites[product].line;
    for (u32 k = 0; k < q->issue_count[i]; k++)
        if (info->sites[q->issues[i][k].site].line == line && first_time(info, info->sites[site].line << 4 | 11, line))
            finding(w, site, lowest_lane(w->live), "sync", "wgmma_touched", "how:%s\nline_of=%u", did[how], line);
}

void rt_wgmma_commit(struct warp *w) {
    struct wgmma *q = wgmma_of(w);
    const u32 i = w->index % WARPGROUP;
    MAKE_ROOM(q->commits[i], q->committed[i], q->commit_capacity[i]);
    q->commits[i][q->committed[i]++] = q->issued[i];
}

/* ---- execution ------------------------------------------------------------------------------------------------------ */

static void execute(struct warp *w, struct wgmma *q) {
    static __thread u32 a[64 * 8], b[256 * 8];
    struct product p = q->products[0];
    const u32 words = p.how.k * element_bits(p.how.a) / 32;
    if (!p.rows) wgmma_operand(w, p.site, p.a, 64, words, p.flags & WGMMA_A_BY_COLUMNS, a);
    wgmma_operand(w, p.site, p.b, p.how.n, words, p.flags & WGMMA_B_BY_COLUMNS, b);
    struct sums *s = &q->sums[p.sums];
    for (u32 i = 0; i < WARPGROUP && !(p.flags & WGMMA_ADDS); i++) memset(s->of[i], 0, s->registers * 32 * sizeof(u32));
    multiply_warpgroup(p.how, p.rows ? p.rows : a, b, s->of);
    free(p.rows);
    memmove(q->products, q->products + 1, --q->count * sizeof *q->products);
    q->executed++;
}

/* Gives the other warps of the warpgroup a turn to issue their part of the next product. */
static void let_others_issue(struct warp *w, u32 site, u32 issued) {
    const struct block *b = w->block;
    const u32 first = w->index / WARPGROUP * WARPGROUP;
    for (u32 i = first; i < first + WARPGROUP; i++)
        if (!(issued >> (i - first) & 1) && (i >= b->warp_count || b->state[i] == WARP_DONE))
            rt_fault(w, site, lowest_lane(w->live), cudaErrorIllegalInstruction, "wgmma_alone", "warp=%u\nfirst=%u\nlast=%u", i, first, first + 3);
    w->asked_in_vain = 1;
    rt_nanosleep(w, 0);
}

void rt_wgmma_wait(struct warp *w, u32 pending) {
    struct wgmma *q = wgmma_of(w);
    const u32 i = w->index % WARPGROUP;
    if (q->committed[i] <= pending) return;
    const u32 due = q->commits[i][q->committed[i] - pending - 1];
    while ((i32)(due - q->executed) > 0)
        if (q->products[0].issued == (1u << WARPGROUP) - 1) execute(w, q);
        else let_others_issue(w, q->products[0].site, q->products[0].issued);
    end_issues(w, q, due);
    if (!pending) q->committed[i] = 0;
}

const u32 *rt_wgmma_result(struct warp *w, u32 sums) {
    struct wgmma *q = wgmma_of(w);
    const u32 i = w->index % WARPGROUP;
    struct sums *s = sums < q->sums_count ? &q->sums[sums] : NULL;
    if (!s || !s->last[i] || (i32)(s->last[i] - q->executed) > 0) return NULL;
    s->last[i] = 0;
    return s->of[i];
}
