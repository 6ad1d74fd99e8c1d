/* Count requests, sectors, wavefronts and conflicts, and write them to the trace. See counters.h. */

#include "emu.h"
#include "counters.h"
#include <stdlib.h>

#define SECTOR_SHIFT 5
#define BANKS 32u
#define SLOTS_TRACED 16384 /* the most stretches of PTX whose executions are in the trace */
#define LINES_TRACED 4096 /* the most source lines with accesses or branches in a program's trace, over all kernels */

/* ---- one request -------------------------------------------------------------------------------------------------- */

static u32 popcount(u32 m) { return (u32)__builtin_popcount(m); }

/* The number of distinct sectors among the lanes of m. Addresses usually ascend, so the last sector found is tried first. */
static u32 distinct_sectors(const u64 *addr, u32 m) {
    u64 seen[32];
    u32 n = 0;
    for (; m; m &= m - 1) {
        u64 sector = addr[__builtin_ctz(m)] >> SECTOR_SHIFT;
        u32 i = n;
        while (i > 0 && seen[i - 1] != sector) i--;
        if (i == 0) seen[n++] = sector;
    }
    return n;
}

/* Local memory is interleaved: word i of 32 lanes is 128 consecutive bytes, so 8 lanes share a sector. */
static u32 local_sectors(const u64 *addr, u32 m, u32 bytes) {
    u32 n = 0;
    for (u32 first = 0; first < 32; first += 8) {
        u64 seen[8 * 4];
        u32 here = 0;
        for (u32 g = m >> first & 0xff; g; g &= g - 1)
            for (u32 b = 0; b < bytes; b += 4) {
                u64 word = (addr[first + (u32)__builtin_ctz(g)] + b) >> 2;
                u32 i = here;
                while (i > 0 && seen[i - 1] != word) i--;
                if (i == 0) seen[here++] = word;
            }
        n += here;
    }
    return n;
}

/* Wavefronts for a group of lanes that are served together: the most distinct words in one bank. */
static u32 group_wavefronts(const u64 *addr, u32 m, u32 words) {
    u32 seen[BANKS][32], count[BANKS] = {0}, most = 0;
    for (; m; m &= m - 1)
        for (u32 k = 0; k < words; k++) {
            u32 word = (u32)(addr[__builtin_ctz(m)] >> 2) + k, bank = word % BANKS, i = count[bank];
            while (i > 0 && seen[bank][i - 1] != word) i--;
            if (i > 0 || count[bank] == 32) continue;
            seen[bank][count[bank]++] = word;
            if (count[bank] > most) most = count[bank];
        }
    return most;
}

/* Whether each lane's partner, lane ^ flip, has the same address or takes no part. */
static int pairs_agree(const u64 *addr, u32 m, u32 flip) {
    for (u32 rest = m; rest; rest &= rest - 1) {
        u32 lane = (u32)__builtin_ctz(rest);
        if (m >> (lane ^ flip) & 1 && addr[lane] != addr[lane ^ flip]) return 0;
    }
    return 1;
}

static u32 shared_wavefronts(const u64 *addr, u32 m, u32 bytes, u32 *conflicts) {
    if (bytes <= 4) {
        u32 n = group_wavefronts(addr, m, 1);
        *conflicts = n - 1;
        return n;
    }
    u32 words = bytes / 4, total = 0, lanes = 64 / words; /* `lanes` are the lanes of two groups that may share a wavefront */
    *conflicts = 0;
    for (u32 first = 0; first < 32; first += lanes) {
        u32 half = ((1u << lanes / 2) - 1) << first, both = m & (half | half << lanes / 2);
        if (!both) continue;
        u32 low = group_wavefronts(addr, both & half, words), high = group_wavefronts(addr, both & ~half, words), apart = low + high;
        u32 merged = pairs_agree(addr, both, 1) || pairs_agree(addr, both, 2) ? group_wavefronts(addr, both, words) : ~0u;
        if (merged <= apart) total += merged, *conflicts += merged - 1;
        else total += apart, *conflicts += apart - (low > 0) - (high > 0);
    }
    return total;
}

/* The number of lanes that wait for another lane of the warp with the same address. */
static u32 same_address(const u64 *addr, u32 m) {
    u32 most = 0;
    for (u32 rest = m; rest;) {
        u32 same = 0;
        u64 a = addr[__builtin_ctz(rest)];
        for (u32 r = rest; r; r &= r - 1)
            if (addr[__builtin_ctz(r)] == a) same |= r & -r;
        rest &= ~same;
        if (popcount(same) > most) most = popcount(same);
    }
    return most ? most - 1 : 0;
}

/* The distance from each lane to the next in bytes; STRIDE_IRREGULAR if it varies. */
static i64 stride_of(const u64 *addr, u32 m) {
    u32 a = lowest_lane(m), b;
    i64 stride = 0;
    for (u32 rest = m & (m - 1), first = 1; rest; rest &= rest - 1, a = b, first = 0) {
        b = (u32)__builtin_ctz(rest);
        i64 step = (i64)(addr[b] - addr[a]);
        if (step % (i64)(b - a)) return STRIDE_IRREGULAR;
        step /= (i64)(b - a);
        if (!first && step != stride) return STRIDE_IRREGULAR;
        stride = step;
    }
    return stride;
}

static void measure(enum target target, const struct access_info *a, const u64 *addr, u32 m, u32 *units, u32 *excess) {
    if (target == TARGET_SHARED && (a->kind == ACCESS_ATOMIC || a->kind == ACCESS_REDUCTION)) {
        *units = *excess = same_address(addr, m);
        return;
    }
    if (target == TARGET_SHARED) {
        *units = shared_wavefronts(addr, m, a->bytes, excess);
        return;
    }
    *units = target == TARGET_LOCAL ? local_sectors(addr, m, a->bytes) : distinct_sectors(addr, m);
    u32 needed = (popcount(m) * (a->bytes < 4 && target == TARGET_LOCAL ? 4 : a->bytes) + 31) >> SECTOR_SHIFT;
    *excess = *units > needed ? *units - needed : 0;
}

static void add(struct access_count *c, u64 times, u32 m, u32 units, u32 excess, i64 stride) {
    c->requests += times, c->lanes += times * popcount(m), c->units += times * units, c->excess += times * excess;
    if (units > c->worst) c->worst = units, c->stride = stride;
}

static const struct access_info *info_of(struct warp *w, u32 access) { return &w->block->launch->module->info->counting->accesses[access]; }

static void count_in(struct warp *w, enum target target, u32 access, const u64 *addr, u32 m) {
    u32 units, excess;
    if (!m) return;
    if (w->requests && target == TARGET_GLOBAL) requests_add(w, access, addr, m);
    measure(target, info_of(w, access), addr, m, &units, &excess);
    add(&w->counters->accesses[access][target], 1, m, units, excess, stride_of(addr, m));
}

/* Lanes of a generic access may use different spaces; each space is then a separate request. */
static void count_request(struct warp *w, u32 access, int space, const u64 *addr, u32 m) {
    if (space == SPACE_SHARED) count_in(w, TARGET_SHARED, access, addr, m);
    else if (space == SPACE_LOCAL) count_in(w, TARGET_LOCAL, access, addr, m);
    else if (space == SPACE_GLOBAL) count_in(w, TARGET_GLOBAL, access, addr, m);
    else {
        u32 lanes[TARGETS] = {0};
        for (u32 l = 0; l < 32; l++)
            if (m >> l & 1 && !is_param(addr[l])) lanes[is_shared(addr[l]) ? TARGET_SHARED : is_local(addr[l]) ? TARGET_LOCAL : TARGET_GLOBAL] |= 1u << l;
        for (int t = 0; t < TARGETS; t++) count_in(w, t, access, addr, lanes[t]);
    }
}

void rt_count_q(struct warp *w, u32 access, int space, const u64 *addr, u32 m) { count_request(w, access, space, addr, m); }

void rt_count_w(struct warp *w, u32 access, int space, const u32 *addr, u32 m) {
    u64 wide[32];
    for (u32 l = 0; l < 32; l++) wide[l] = addr[l];
    count_request(w, access, space, wide, m);
}

/* Adds the repeats of a pattern to its access. */
static void settle(struct counters *c, u32 access) {
    struct pattern *p = &c->patterns[access];
    if (p->repeats) add(&c->accesses[access][p->target], p->repeats, p->lanes, p->units, p->excess, popcount(p->lanes) == 1 ? 0 : p->stride);
    p->repeats = 0;
}

void rt_count_a(struct warp *w, u32 access, int space, u64 base, i64 stride, u32 m) {
    u64 addr[32];
    for (u32 l = 0; l < 32; l++) {
        addr[l] = base + (u64)stride * l;
        if (space == SPACE_SHARED || space == SPACE_LOCAL) addr[l] = (u32)addr[l];
    }
    if (space == SPACE_GENERIC) { /* no pattern: a repeat might be in another space */
        count_request(w, access, space, addr, m);
        return;
    }
    enum target target = space == SPACE_SHARED ? TARGET_SHARED : space == SPACE_LOCAL ? TARGET_LOCAL : TARGET_GLOBAL;
    if (w->requests && target == TARGET_GLOBAL) requests_add(w, access, addr, m);
    struct pattern *p = &w->counters->patterns[access];
    settle(w->counters, access);
    p->phase = PHASE(space, base), p->stride = stride, p->lanes = m, p->target = target;
    p->repeats = 1;
    measure(target, info_of(w, access), addr, m, &p->units, &p->excess);
}

/* Sectors of an asynchronous copy of 16 bytes per lane: for each 128 bytes of global memory, the number of sectors read
 * or of 32-byte units written in shared memory, whichever is larger (as an H200 counts them: docs/counters.md). */
static u32 copied_sectors(const u64 *source, const u64 *target, u32 m) {
    u32 total = 0;
    for (u32 rest = m; rest;) {
        u64 line = source[lowest_lane(rest)] >> 7;
        u32 lanes = 0;
        for (u32 r = rest; r; r &= r - 1)
            if (source[__builtin_ctz(r)] >> 7 == line) lanes |= r & -r;
        rest &= ~lanes;
        u32 read = distinct_sectors(source, lanes), written = distinct_sectors(target, lanes);
        total += read > written ? read : written;
    }
    return total;
}

void rt_count_copy(struct warp *w, u32 from, u32 to, const u64 *source, const u64 *target, u32 m) {
    if (!m) return;
    u32 units, excess;
    u64 place[32];
    for (u32 l = 0; l < 32; l++) place[l] = (u32)target[l];
    count_in(w, TARGET_SHARED, to, place, m);
    if (w->requests) requests_add(w, from, source, m);
    measure(TARGET_GLOBAL, info_of(w, from), source, m, &units, &excess);
    if (info_of(w, from)->bytes == 16) {
        u32 copied = copied_sectors(source, place, m);
        excess += copied - units, units = copied;
    }
    add(&w->counters->accesses[from][TARGET_GLOBAL], 1, m, units, excess, stride_of(source, m));
}

void rt_count_matrix(struct warp *w, u32 access, const u64 *addr, u32 count) {
    u32 total = 0, conflicts = 0;
    u64 offset[32];
    for (u32 l = 0; l < 32; l++) offset[l] = (u32)addr[l];
    for (u32 j = 0; j < count; j++) {
        u32 n = group_wavefronts(offset, 0xffu << 8 * j, 4);
        total += n, conflicts += n - 1;
    }
    u32 lanes = count == 4 ? ~0u : (1u << 8 * count) - 1;
    add(&w->counters->accesses[access][TARGET_SHARED], 1, lanes, total, conflicts, stride_of(offset, lanes));
}

void rt_count_switch(struct warp *w, u32 branch, const u32 *index, u32 m) {
    u32 go = 0;
    for (u32 l = 0; l < 32; l++) go |= (u32)(index[l] == index[lowest_lane(m)]) << l;
    COUNT_BRANCH(w, branch, go & m, m);
}

/* ---- a worker's counters, and a launch's ----------------------------------------------------------------------------- */

static struct counters *fresh(const struct counting *t) {
    struct counters *c = malloc(sizeof *c);
    c->tables = t;
    memset(c->async, 0, sizeof c->async);
    c->slots = calloc(t->slot_count + 1, sizeof *c->slots);
    c->branches = calloc(t->branch_count + 1, sizeof *c->branches);
    c->accesses = calloc(t->access_count + 1, sizeof *c->accesses);
    c->patterns = calloc(t->access_count + 1, sizeof *c->patterns);
    return c;
}

static void discard(struct counters *c) {
    free(c->slots), free(c->branches), free(c->accesses), free(c->patterns), free(c);
}

static void add_up(struct counters *sum, const struct counters *c, const struct counting *t) {
    for (u32 i = 0; i < ASYNC_STAGES; i++) sum->async[i] += c->async[i];
    if (c->async[ASYNC_STAGES] > sum->async[ASYNC_STAGES]) sum->async[ASYNC_STAGES] = c->async[ASYNC_STAGES];
    for (u32 i = 0; i < t->slot_count; i++) sum->slots[i].entered += c->slots[i].entered, sum->slots[i].lanes += c->slots[i].lanes;
    for (u32 i = 0; i < t->branch_count; i++) sum->branches[i].reached += c->branches[i].reached, sum->branches[i].parted += c->branches[i].parted;
    for (u32 i = 0; i < t->access_count; i++)
        for (int s = 0; s < TARGETS; s++) {
            struct access_count *to = &sum->accesses[i][s];
            const struct access_count *from = &c->accesses[i][s];
            to->requests += from->requests, to->lanes += from->lanes, to->units += from->units, to->excess += from->excess;
            if (from->worst > to->worst) to->worst = from->worst, to->stride = from->stride;
        }
}

/* A worker keeps its patterns from launch to launch. */
void counters_start(struct worker *k, struct launch *l) {
    const struct counting *t = l->module->info->counting;
    if (!t) return;
    if (k->counters && k->counters->tables != t) {
        discard(k->counters);
        k->counters = NULL;
    }
    if (!k->counters) k->counters = fresh(t);
    memset(k->counters->async, 0, sizeof k->counters->async);
    memset(k->counters->slots, 0, t->slot_count * sizeof *k->counters->slots);
    memset(k->counters->branches, 0, t->branch_count * sizeof *k->counters->branches);
    memset(k->counters->accesses, 0, t->access_count * sizeof *k->counters->accesses);
}

void counters_stop(struct worker *k, struct launch *l) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const struct counting *t = l->module->info->counting;
    if (!t) return;
    pthread_mutex_lock(&lock);
    if (!l->counters) l->counters = fresh(t);
    for (u32 i = 0; i < t->access_count; i++) settle(k->counters, i);
    add_up(l->counters, k->counters, t);
    pthread_mutex_unlock(&lock);
}

/* ---- the trace ------------------------------------------------------------------------------------------------------- */

/* A kernel's counters by source line, over all its launches; written when the program ends. In a sampled run, over its
 * launches with the same grid, block and shared memory.
 *
 * Theory of a sampled run (GRADER_EMULATOR_SAMPLE=n). Of each launch n blocks run, spread evenly, and what they count stands for
 * all blocks. After the first launches of a kernel only some run, at odd intervals so that no period is missed, and stand for
 * the others. Results are wrong. Kernels whose blocks wait for each other run whole if the launch is cooperative. */
struct kernel_lines {
    const struct kernel_info *kernel;
    const struct module_info *info;
    struct counters *sum;
    struct reuse *reuse;
    u32 grid[3], block[3], dynamic, streams; /* streams: of the first 32, a bit for each in use */
    u64 launches, stood_for, recorded; /* launches; those that the ones that ran stand for; recorded blocks */
    struct kernel_lines *next;
};
#define RECORDED 4u /* blocks whose requests are recorded */
static struct kernel_lines *all_lines;
static pthread_mutex_t lines_lock = PTHREAD_MUTEX_INITIALIZER;

static u64 sample(void) {
    static i64 wanted = -1;
    if (wanted < 0) {
        const char *text = getenv("GRADER_EMULATOR_SAMPLE");
        wanted = text ? atol(text) : 0;
    }
    return (u64)wanted;
}
int is_sampled(void) { return sample() > 0; }

static int is_of(const struct kernel_lines *k, const struct launch *l) {
    const int same = !memcmp(k->grid, l->grid, sizeof l->grid) && !memcmp(k->block, l->block, sizeof l->block) && k->dynamic == l->dynamic_shared;
    return k->kernel == l->kernel && (same || !is_sampled());
}

static struct kernel_lines *lines_of(const struct launch *l) {
    pthread_mutex_lock(&lines_lock);
    struct kernel_lines *k = all_lines;
    while (k && !is_of(k, l)) k = k->next;
    if (!k) {
        k = calloc(1, sizeof *k);
        const struct counting *t = l->module->info->counting;
        k->kernel = l->kernel, k->info = l->module->info, k->sum = fresh(t), k->reuse = calloc(t->access_count + 1, sizeof *k->reuse);
        memcpy(k->grid, l->grid, sizeof l->grid), memcpy(k->block, l->block, sizeof l->block), k->dynamic = l->dynamic_shared;
        k->next = all_lines, all_lines = k;
    }
    k->launches++;
    k->streams |= 1u << (u32)l->work.stream->number % 32;
    pthread_mutex_unlock(&lines_lock);
    return k;
}

void counters_begin(struct launch *l) {
    const u64 parts = l->blocks / l->cluster_size;
    l->sampled = parts, l->weight = 1;
    if (!l->module->info->counting) return;
    l->lines = lines_of(l);
    if (!is_sampled() || l->cooperative) return;
    const u64 n = l->lines->launches - 1, every = n < 64 ? 1 : n < 4096 ? 13 : 211;
    l->sampled = n % every ? 0 : parts < sample() ? parts : sample();
    if (l->sampled) l->weight = (double)parts / (double)l->sampled * (double)every, l->lines->stood_for += every;
}

void counters_block(struct block *b) {
    struct kernel_lines *k = b->launch->lines;
    if (is_sampled() && k && __atomic_fetch_add(&k->recorded, 1, __ATOMIC_SEQ_CST) < RECORDED) requests_start(b, k->info->counting->access_count);
}

void counters_block_done(struct block *b) {
    if (!b->warps[0].requests) return;
    pthread_mutex_lock(&lines_lock);
    requests_end(b, b->launch->lines->reuse);
    pthread_mutex_unlock(&lines_lock);
}

/* What the blocks that ran counted, for all blocks of the launches that they stand for. */
static void weigh(struct counters *c, const struct counting *t, double weight) {
    if (weight == 1) return;
#define WEIGH(x) ((x) = (u64)((double)(x) * weight + 0.5))
    for (u32 i = 0; i < t->slot_count; i++) WEIGH(c->slots[i].entered), WEIGH(c->slots[i].lanes);
    for (u32 i = 0; i < t->branch_count; i++) WEIGH(c->branches[i].reached), WEIGH(c->branches[i].parted);
    for (u32 i = 0; i < t->access_count; i++)
        for (int s = 0; s < TARGETS; s++) {
            struct access_count *const a = &c->accesses[i][s];
            WEIGH(a->requests), WEIGH(a->lanes), WEIGH(a->units), WEIGH(a->excess);
        }
}

static void remember_lines(const struct launch *l) {
    pthread_mutex_lock(&lines_lock);
    weigh(l->counters, l->module->info->counting, l->weight);
    add_up(l->lines->sum, l->counters, l->module->info->counting);
    pthread_mutex_unlock(&lines_lock);
}

struct text { char *at; size_t left; };
static void put(struct text *t, const char *name, const char *suffix, u64 value) {
    int n = snprintf(t->at, t->left, "%s\"%s%s\":%llu", t->at[-1] == '{' ? "" : ",", name, suffix, (unsigned long long)value);
    if (n > 0 && (size_t)n < t->left) t->at += n, t->left -= (size_t)n;
}

static const char *const class_names[CLASSES] = {"integer", "fp32", "fp64", "fp16", "tensor", "conversion", "memory", "control", "barrier", "inter_thread", "misc"};
static const char *const precision_names[PRECISIONS] = {"hp", "sp", "dp"};
static const char *const operation_names[OPERATIONS] = {"add", "mul", "fma", "special"};

static void put_instructions(struct text *out, const struct counters *c, const struct counting *t) {
    u64 issued[CLASSES] = {0}, lanes = 0, all = 0, done[CLASSES] = {0}, done_all = 0, operations[PRECISIONS][OPERATIONS] = {{0}}, branches = 0, tensor = 0;
    for (u32 i = 0; i < t->slot_count; i++) {
        const struct slot_info *s = &t->slots[i];
        const struct slot_count *n = &c->slots[i];
        if (!n->entered) continue;
        for (int k = 0; k < CLASSES; k++) {
            issued[k] += s->issued[k] * n->entered, all += s->issued[k] * n->entered, lanes += s->issued[k] * n->lanes;
            done[k] += s->done[k] * n->lanes, done_all += s->done[k] * n->lanes;
        }
        for (int p = 0; p < PRECISIONS; p++)
            for (int o = 0; o < OPERATIONS; o++) operations[p][o] += s->operations[p][o] * n->lanes;
        branches += s->branches * n->entered, tensor += s->tensor_operations * n->entered;
    }
    u64 parted = 0;
    for (u32 i = 0; i < t->branch_count; i++) parted += c->branches[i].parted;
    put(out, "instructions", "", all);
    put(out, "thread_instructions", "", lanes);
    put(out, "thread_instructions_pred_on", "", done_all);
    for (int k = 0; k < CLASSES; k++) put(out, "warp_", class_names[k], issued[k]);
    for (int k = 0; k < CLASSES; k++) put(out, "thread_", class_names[k], done[k]);
    put(out, "branches", "", branches);
    put(out, "divergent_branches", "", parted);
    for (int p = 0; p < PRECISIONS; p++)
        for (int o = 0; o < OPERATIONS; o++) {
            char name[24];
            snprintf(name, sizeof name, "flop_%s_", precision_names[p]);
            put(out, name, operation_names[o], operations[p][o]);
        }
    put(out, "flop_tensor", "", tensor);
}

static void put_async(struct text *out, const struct launch *l) {
    static const char *const names[ASYNC_COUNTS] = {"wgmma", "wgmma_from_registers", "bulk_loads", "bulk_load_bytes", "bulk_store_bytes", "bulk_multicast_bytes", "barrier_object_waits", "bulk_stages"};
    for (u32 i = 0; i < ASYNC_COUNTS; i++) put(out, names[i], "", l->counters->async[i]);
    put(out, "cluster_blocks", "", l->cluster_size > 1 ? l->cluster_size : 0);
}

static const char *const kind_names[ACCESS_KINDS] = {"load", "store", "atomic", "reduction", "async_copy", "async_copy"};
static const char *const target_names[TARGETS] = {"global", "shared", "local"};

static const char *unit_name(int target, int kind) {
    return target != TARGET_SHARED ? "_sectors" : kind == ACCESS_ATOMIC || kind == ACCESS_REDUCTION ? "_same_address" : "_wavefronts";
}

static void put_accesses(struct text *out, const struct counters *c, const struct counting *t) {
    struct { u64 requests, bytes, units, excess; } sum[TARGETS][ACCESS_KINDS];
    memset(sum, 0, sizeof sum);
    for (u32 i = 0; i < t->access_count; i++)
        for (int s = 0; s < TARGETS; s++) {
            const struct access_count *n = &c->accesses[i][s];
            const struct access_info *a = &t->accesses[i];
            sum[s][a->kind].requests += n->requests, sum[s][a->kind].bytes += n->lanes * a->bytes;
            sum[s][a->kind].units += n->units, sum[s][a->kind].excess += n->excess;
        }
    for (int s = 0; s < TARGETS; s++)
        for (int k = 0; k < ACCESS_KINDS; k++) {
            if (s == TARGET_LOCAL && k > ACCESS_STORE) continue;
            if (k == ACCESS_COPY_FROM && s != TARGET_GLOBAL) continue;
            if (k == ACCESS_COPY_TO && s != TARGET_SHARED) continue;
            char name[40];
            snprintf(name, sizeof name, "%s_%s", target_names[s], kind_names[k]);
            put(out, name, "_requests", sum[s][k].requests);
            put(out, name, "_bytes", sum[s][k].bytes);
            put(out, name, unit_name(s, k), sum[s][k].units);
            if (s == TARGET_SHARED && unit_name(s, k)[1] == 'w') put(out, name, "_bank_conflicts", sum[s][k].excess);
        }
}

void counters_text(struct launch *l, char *buffer, size_t size) {
    snprintf(buffer, size, "{");
    if (l->counters) {
        struct text out = {buffer + 1, size - 3};
        put_instructions(&out, l->counters, l->module->info->counting);
        put_accesses(&out, l->counters, l->module->info->counting);
        put_async(&out, l);
        remember_lines(l);
        discard(l->counters);
        l->counters = NULL;
        if (l->abort) put(&out, "blocks_begun", "", l->next < l->blocks ? l->next : l->blocks);
        memcpy(out.at, "}", 2);
    } else
        snprintf(buffer, size, "{}");
}

/* In a sampled run: the number of the kernel's launches, and what they have in common. */
static void trace_launches(const struct kernel_lines *k, u32 group) {
    char kernel[2100], entry[2100];
    trace_line("{\"kind\":\"launches\",\"group\":%u,\"kernel\":%s,\"entry\":%s,\"count\":%llu,\"streams\":%u,\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],"
               "\"static_shared_bytes\":%u,\"dynamic_shared_bytes\":%u,\"local_bytes\":%u}",
               group, json_string(demangle(k->kernel->name), kernel, sizeof kernel), json_string(k->kernel->name, entry, sizeof entry), (unsigned long long)k->launches,
               (u32)__builtin_popcount(k->streams), k->grid[0], k->grid[1], k->grid[2], k->block[0], k->block[1], k->block[2], k->kernel->static_shared, k->dynamic,
               k->kernel->local_bytes);
}

/* In a sampled run: how far apart an access's uses of the same sectors are. */
static void trace_reuse(const struct kernel_lines *k, u32 group, u32 i) {
    const struct reuse *r = &k->reuse[i];
    char near[REUSE_BUCKETS * 21 + 1];
    size_t n = 0;
    for (u32 j = 0; j < REUSE_BUCKETS; j++) n += (size_t)snprintf(near + n, sizeof near - n, "%s%llu", j ? "," : "", (unsigned long long)r->near[j]);
    if (r->array_bytes)
        trace_line("{\"kind\":\"reuse\",\"group\":%u,\"ptx_line\":%u,\"array\":%llu,\"array_bytes\":%llu,\"near\":[%s]}", group,
                   k->info->counting->accesses[i].ptx_line, (unsigned long long)r->array, (unsigned long long)r->array_bytes, near);
}

static void trace_access(const struct kernel_lines *k, u32 group, u32 i, int s, u32 *left) {
    const struct access_info *a = &k->info->counting->accesses[i];
    const struct access_count *n = &k->sum->accesses[i][s];
    if (!n->requests || !a->at.line || !*left) return;
    --*left;
    char kernel[2100], file[2100], stride[24] = "null";
    if (n->stride != STRIDE_IRREGULAR) snprintf(stride, sizeof stride, "%lld", (long long)n->stride);
    trace_line("{\"kind\":\"access\",\"group\":%u,\"kernel\":%s,\"file\":%s,\"line\":%u,\"ptx_line\":%u,\"space\":\"%s\",\"operation\":\"%s\",\"bytes\":%u,\"stride\":%s,"
               "\"requests\":%llu,\"lanes\":%llu,\"units\":%llu,\"excess\":%llu,\"worst\":%u}",
               group, json_string(demangle(k->kernel->name), kernel, sizeof kernel), json_string(k->info->files[a->at.file], file, sizeof file), a->at.line, a->ptx_line, target_names[s],
               kind_names[a->kind], a->bytes, stride, (unsigned long long)n->requests, (unsigned long long)n->lanes, (unsigned long long)n->units,
               (unsigned long long)n->excess, n->worst);
}

static void trace_branch(const struct kernel_lines *k, u32 i, u32 *left) {
    const struct place *at = &k->info->counting->branches[i];
    const struct branch_count *n = &k->sum->branches[i];
    if (!n->reached || !at->line || !*left) return;
    --*left;
    char kernel[2100], file[2100];
    trace_line("{\"kind\":\"branch\",\"kernel\":%s,\"file\":%s,\"line\":%u,\"reached\":%llu,\"divergent\":%llu}",
               json_string(demangle(k->kernel->name), kernel, sizeof kernel), json_string(k->info->files[at->file], file, sizeof file), at->line,
               (unsigned long long)n->reached, (unsigned long long)n->parted);
}

/* How often the instructions of PTX lines first..last of a function were executed, by warps and by lanes. */
static void trace_slot(const struct kernel_lines *k, u32 group, u32 i, u32 *left) {
    const struct slot_info *s = &k->info->counting->slots[i];
    const struct slot_count *n = &k->sum->slots[i];
    if (!n->entered || !s->first || !*left) return;
    --*left;
    char symbol[2100];
    trace_line("{\"kind\":\"executed\",\"group\":%u,\"function\":%s,\"first\":%u,\"last\":%u,\"warps\":%llu,\"lanes\":%llu}", group,
               json_string(s->symbol, symbol, sizeof symbol), s->first, s->last, (unsigned long long)n->entered, (unsigned long long)n->lanes);
}

void counters_finish(void) {
    u32 left = LINES_TRACED, slots = SLOTS_TRACED, group = 0;
    for (struct kernel_lines *k = all_lines; k; k = k->next, group++) {
        if (is_sampled()) {
            if (k->stood_for) weigh(k->sum, k->info->counting, (double)k->launches / (double)k->stood_for);
            trace_launches(k, group);
            for (u32 i = 0; i < k->info->counting->slot_count; i++) trace_slot(k, group, i, &slots);
            for (u32 i = 0; i < k->info->counting->access_count; i++) trace_reuse(k, group, i);
        }
        for (u32 i = 0; i < k->info->counting->access_count; i++)
            for (int s = 0; s < TARGETS; s++) trace_access(k, group, i, s, &left);
        for (u32 i = 0; i < k->info->counting->branch_count; i++) trace_branch(k, i, &left);
    }
}
