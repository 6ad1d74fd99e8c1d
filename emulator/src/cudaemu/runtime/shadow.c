/* Races and uninitialised reads (--sanitize race,init).
 *
 * Programs built with these sanitizers send every access to shared and global memory through access.c, which calls here.
 * Each 4-byte word has a cell that remembers its last write, its last atomic update and its last reads by two warps,
 * each with the phase (order.c), the place in the program, the thread and the bytes of the word. Two accesses to a
 * byte, one of them a write, are a race if the program does not put them in order, even if this schedule produced the
 * right result:
 *
 *   threads of different blocks or warps    order.c decides, by a block's barriers and by fences with atomics
 *   lanes of one warp                       a warning if no __syncwarp, shuffle, vote or barrier lies between: since
 *                                           compute capability 7.0 they need not run in step
 *
 * Not a race: two atomics; two accesses that are both relaxed, acquire or release (morally strong in the PTX memory
 * model); two volatile accesses in a launch that uses fences; a volatile read and an atomic; writes of the value that
 * memory already has. Only a note is a plain read and an atomicCAS, Min, Max, And or Or: loops around these usually
 * begin with such a read.
 *
 * Under --sanitize race, launches run on one worker: cells need no locks, and reports are the same each time. */

#define _GNU_SOURCE
#include "shadow.h"
#include <stdlib.h>
#include <sys/mman.h>

/* ---- memory of cells ------------------------------------------------------------------------------------------------ */

void shadow_start(struct block *b) {
    u32 words = (b->launch->shared_bytes + 3) / 4;
    if (b->shadow_words < words) {
        free(b->shadow);
        b->shadow = malloc(words * sizeof *b->shadow);
        b->shadow_words = words;
    }
    memset(b->shadow, 0, words * sizeof *b->shadow);
    b->early_count = 0, b->epoch_alive = b->launch->threads;
    proxies_start(b);
    order_start_block(b);
}

void shadow_end(struct block *b) {
    proxies_end(b);
    free(b->shadow), free(b->local_written);
    b->shadow = NULL, b->local_written = NULL, b->shadow_words = 0;
}

static struct cell *global_cell(struct allocation *a, u64 addr) {
    if (!a->cells) { /* the system provides pages as they are touched */
        a->cells_bytes = (a->size / 4 + 2) * sizeof(struct cell);
        void *p = mmap(NULL, a->cells_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) return NULL;
        a->cells = p;
    }
    return &a->cells[addr / 4 - a->start / 4];
}

/* ---- accesses --------------------------------------------------------------------------------------------------------- */

const char *word_for(const struct site_info *s) {
    return s->kind == SITE_ATOMIC ? "update" : s->kind == SITE_STORE ? "write" : s->kind == SITE_COPY ? "copy" : "read";
}

void place_of(const struct access *x, u64 addr, char *text, size_t size) {
    if (x->allocation) memory_place(x->allocation, addr, text, size);
    else shared_place(x->w->block->launch->kernel, (u32)addr, x->w->shared_size, text, size);
}

void race_facts(const struct access *x, u64 addr, const struct site_info *other, char *text, size_t size) {
    const struct module_info *info = x->w->block->launch->module->info;
    int n = snprintf(text, size, "does:%s\nother_does:%s\nother_file:%s\nother_line=%u\n", x->does, word_for(other), info->files[(u64)other->file], other->line);
    if (n > 0 && (size_t)n < size) place_of(x, addr, text + n, size - (size_t)n);
}

/* ---- races ------------------------------------------------------------------------------------------------------------ */

/* What the kinds of two accesses, one of them a write, allow in any order. */
enum agreement { AGREE_NOT, AGREE, AGREE_MOSTLY };
static enum agreement agreement(const struct site_info *a, const struct site_info *b) {
    int strong_a = a->kind == SITE_ATOMIC || a->order & SITE_STRONG, strong_b = b->kind == SITE_ATOMIC || b->order & SITE_STRONG;
    if (a->kind == SITE_ATOMIC && b->kind == SITE_ATOMIC) return AGREE;
    if (a->kind == SITE_ATOMIC && b->kind == SITE_LOAD) return strong_b ? AGREE : a->order & SITE_TOLERANT ? AGREE_MOSTLY : AGREE_NOT;
    if (b->kind == SITE_ATOMIC && a->kind == SITE_LOAD) return agreement(b, a);
    return strong_a && strong_b && (a->order & b->order & SITE_ORDERED || order_uses_fences());
}

static void report_race(const struct access *x, u64 addr, u32 other_at, int other_known, u64 other_block, enum order order, int same_warp) {
    struct block *b = x->w->block;
    const struct launch *l = b->launch;
    u32 other_site = other_at >> 10, other = other_at & 1023;
    const struct site_info *s = &x->sites[other_site];
    int strong = s->order & x->sites[x->site].order & SITE_STRONG; /* accesses to a flag; races on the data that it guards are worse */
    int in_warp = order == ORDER_NONE_IN_BLOCK && same_warp, at_once = same_warp && x->site == other_site;
    const char *kind = strong || (s->kind != SITE_LOAD && x->writes && s->kind != SITE_ATOMIC && !x->atomic) ? "race_of_writes" : "race", *how;
    char who[120] = "", facts[1800];
    if (other_known && other_block != OTHER_LAUNCH)
        snprintf(who, sizeof who, "other_thread:(%u,%u,%u)", other % x->w->ntid[0], other / x->w->ntid[0] % x->w->ntid[1], other / x->w->ntid[0] / x->w->ntid[1]);
    if (other_known && other_block != OTHER_LAUNCH && order == ORDER_NONE_IN_GRID)
        snprintf(who + strlen(who), sizeof who - strlen(who), "\nother_block:(%u,%u,%u)", (u32)(other_block % l->grid[0]), (u32)(other_block / l->grid[0] % l->grid[1]),
                 (u32)(other_block / l->grid[0] / l->grid[1]));
    if (s->order & SITE_ASYNC && s->kind == SITE_COPY) how = "copy_object";
    else if (x->sites[x->site].order & SITE_ASYNC && x->sites[x->site].kind == SITE_COPY) how = "copy_overwrites";
    else if (other_block == OTHER_LAUNCH) how = "launches";
    else if (order == ORDER_NONE_IN_GRID) how = x->allocation ? "blocks" : "cluster";
    else if (at_once) how = "at_once";
    else if (s->kind == SITE_COPY) how = "after_copy";
    else how = x->sites[x->site].line == s->line ? "update" : "barrier";
    if (in_warp) kind = "race_in_warp";
    u32 lines[2] = {x->sites[x->site].line, s->line}, class = (u32)(2 * order + same_warp) * 2 + (strcmp(kind, "race") == 0);
    if (!first_time(l->module->info, (lines[0] < lines[1] ? lines[0] : lines[1]) << 4 | class, lines[0] < lines[1] ? lines[1] : lines[0])) return;
    race_facts(x, addr, s, facts, sizeof facts);
    finding(x->w, x->site, x->thread, "race", kind, "how:%s\nbetween:%s\n%s\n%s", how, order == ORDER_NONE_IN_GRID ? "blocks" : same_warp ? "lanes" : "warps", facts, who);
}

/* A plain read of a word that other threads change by atomics is a race in the memory model, and usually harmless. */
static void note_race(const struct access *x, u64 addr, u32 other_at) {
    const struct site_info *s = &x->sites[other_at >> 10];
    u32 lines[2] = {x->sites[x->site].line, s->line};
    if (!first_time(x->w->block->launch->module->info, (lines[0] < lines[1] ? lines[0] : lines[1]) << 4 | 12, lines[0] < lines[1] ? lines[1] : lines[0])) return;
    char place[1800];
    race_facts(x, addr, s, place, sizeof place);
    finding(x->w, x->site, x->thread, "race", "outdated_read", "%s", place);
}

/* Reports a race with an earlier write or atomic. */
static void against_write(const struct access *x, const struct record *r, u32 bytes, u32 step, u64 addr) {
    if (!r->stamp || !(bytes & x->bytes)) return;
    u32 other = r->at & 1023;
    u64 block = 0;
    enum order order = order_of(x->w, r->stamp, &block);
    const struct site_info *s = &x->sites[r->at >> 10];
    const enum agreement agree = agreement(&x->sites[x->site], s);
    if (order == ORDER_BEFORE || (x->same_value && (s->kind == SITE_STORE || s->kind == SITE_COPY)) || agree == AGREE) return;
    int same_warp = order == ORDER_NONE_IN_BLOCK && other / 32 == x->w->index;
    if (agree == AGREE_MOSTLY) {
        if (!same_warp) note_race(x, addr, r->at);
        return;
    }
    if (same_warp && (other == x->thread || r->stamp != x->stamp || step != x->step)) return;
    report_race(x, addr, r->at, 1, block, order, same_warp);
}

/* Reports a race with earlier reads. */
static void against_reads(const struct access *x, struct cell *c, u64 addr) {
    if (!c->read.stamp || !(c->read_bytes & x->bytes)) return;
    u32 other = c->read.at & 1023;
    u64 block = 0;
    enum order order = order_of(x->w, c->read.stamp, &block);
    const enum agreement agree = agreement(&x->sites[x->site], &x->sites[c->read.at >> 10]);
    if (order == ORDER_BEFORE || agree == AGREE) return;
    if (agree == AGREE_MOSTLY) {
        if (order == ORDER_NONE_IN_GRID || other / 32 != x->w->index || c->readers & (READERS_OTHER_WARP | READERS_OTHER_BLOCK)) note_race(x, addr, c->read.at);
        return;
    }
    u64 far_block = 0;
    u32 far = c->far_read.at & 1023;
    enum order far_order = c->far_read.stamp ? order_of(x->w, c->far_read.stamp, &far_block) : ORDER_BEFORE;
    if (order == ORDER_NONE_IN_GRID || c->readers & READERS_OTHER_BLOCK) {
        int own = order != ORDER_NONE_IN_GRID, known = !own || far_order == ORDER_NONE_IN_GRID;
        c->raced = 1;
        report_race(x, addr, own && known ? c->far_read.at : c->read.at, known, own ? far_block : block, ORDER_NONE_IN_GRID, 0);
        return;
    }
    if (other / 32 != x->w->index || c->readers & READERS_OTHER_WARP) {
        c->raced = 1;
        int own = other / 32 == x->w->index, known = !own || (far_order == ORDER_NONE_IN_BLOCK && far / 32 != x->w->index);
        report_race(x, addr, own && known ? c->far_read.at : c->read.at, known, block, ORDER_NONE_IN_BLOCK, 0);
        return;
    }
    if (c->read.stamp != x->stamp || c->read_step != x->step) return;
    if (other == x->thread && !(c->readers & READERS_OTHER_LANE)) return;
    c->raced = 1;
    report_race(x, addr, c->read.at, other != x->thread, block, ORDER_NONE_IN_BLOCK, 1);
}

void remember_read(const struct access *x, struct cell *c) {
    u32 other = c->read.at & 1023;
    u64 block = 0;
    enum order order = c->read.stamp ? order_of(x->w, c->read.stamp, &block) : ORDER_BEFORE;
    u8 readers = 0, bytes = x->bytes;
    if (order != ORDER_BEFORE) {
        readers = c->readers;
        if (order == ORDER_NONE_IN_GRID) readers |= READERS_OTHER_BLOCK;
        else if (other / 32 != x->w->index) readers |= READERS_OTHER_WARP;
        else if (c->read_step != x->step) readers &= (u8)~READERS_OTHER_LANE;
        else if (other != x->thread) readers |= READERS_OTHER_LANE;
        if (order == ORDER_NONE_IN_GRID || other / 32 != x->w->index) c->far_read = c->read;
        if (other == x->thread) bytes |= c->read_bytes;
        else if (bytes & c->read_bytes) bytes &= c->read_bytes; /* the bytes that other threads have read too */
        else readers = 0;
    }
    c->read = (struct record){x->stamp, x->site << 10 | x->thread};
    c->read_step = x->step, c->read_bytes = bytes & 15, c->readers = readers & 15;
}

void remember_write(const struct access *x, struct cell *c) {
    struct record *r = x->atomic ? &c->update : &c->write;
    int again = r->stamp == x->stamp && (r->at & 1023) == x->thread;
    u32 bytes = (x->bytes | (again ? x->atomic ? c->update_bytes : c->write_bytes : 0u)) & 15;
    *r = (struct record){x->stamp, x->site << 10 | x->thread};
    if (x->atomic) c->update_step = x->step, c->update_bytes = bytes;
    else c->write_step = x->step, c->write_bytes = bytes;
}

/* ---- uninitialised reads ------------------------------------------------------------------------------------------------ */

/* Whether no uninitialised read of this line has been reported yet: an unrolled loop has many sites. */
static int first_of_line(const struct module_info *info, u32 site) {
    return first_time(info, info->sites[site].line | (u32)(u64)info->sites[site].file << 20, ~0u);
}

static void report_uninitialised(const struct access *x, u64 addr) {
    if (!first_of_line(x->w->block->launch->module->info, x->site)) return;
    char place[400];
    place_of(x, addr, place, sizeof place);
    finding(x->w, x->site, x->thread, "init", "uninitialised", "%s", place);
}

/* Whether the program does not use the word of a load that begins `at` bytes behind its start. */
static int unneeded(const struct site_info *s, u32 at) { return s->order / SITE_UNNEEDED >> at / 4 & 1; }

#define PADDING_WORDS 8u /* a longer gap between stored words is not padding at the end of a row */

/* Reports a word of shared memory that no thread has written. The written words of the variable suggest why: a short gap
 * between them is padding, about which the storing and the reading line disagree; or threads that have returned did not
 * store their share. */
static void report_unwritten(const struct access *x, u64 addr) {
    const struct block *b = x->w->block;
    const struct launch *l = b->launch;
    const struct module_info *info = l->module->info;
    if (!first_of_line(info, x->site)) return;
    u32 start, bytes = shared_extent(l->kernel, (u32)addr, x->w->shared_size, &start), at = (u32)addr / 4, written = 0, before = ~0u, after = ~0u;
    for (u32 i = start / 4; i < (start + bytes) / 4; i++) {
        if (!b->shadow[i].initialised) continue;
        written++;
        if (i < at) before = i;
        else if (i > at && after == ~0u) after = i;
    }
    u32 line = before != ~0u && b->shadow[before].write.stamp ? info->sites[b->shadow[before].write.at >> 10].line : 0;
    u32 line_after = after != ~0u && b->shadow[after].write.stamp ? info->sites[b->shadow[after].write.at >> 10].line : 0;
    char place[400], why[200] = "";
    const char *how = "nothing";
    if (line && line_after && after - before <= PADDING_WORDS) how = line == line_after ? "gap" : "gap_of_two";
    else if (b->epoch_alive < l->threads) how = "returned";
    else if (written) how = line ? "part_after" : "part";
    snprintf(why, sizeof why, "how:%s\nstores=%u\nstores_after=%u\nreturned=%u\nthreads=%u\nwithout=%u\nwords=%u", how, line, line_after, l->threads - b->epoch_alive, l->threads,
             bytes / 4 - written, bytes / 4);
    place_of(x, addr, place, sizeof place);
    finding(x->w, x->site, x->thread, "init", "unwritten_shared", "%s\n%s", why, place);
}

/* A thread may read memory that another writes later in the same epoch: that is a race, and reported as one. So an
 * uninitialised read of shared memory is reported only at the end of the epoch. */
static void remember_early_read(const struct access *x, u64 addr) {
    struct block *b = x->w->block;
    for (u32 i = 0; i < b->early_count; i++)
        if (b->early[i].site == x->site && b->early[i].addr / 4 == addr / 4) return;
    for (u32 i = 0; i < b->early_count && b->early_count == EARLY_READS; i++)
        if (b->shadow[b->early[i].addr / 4].raced) b->early[i] = b->early[--b->early_count];
    if (b->early_count < EARLY_READS) b->early[b->early_count++] = (struct early_read){x->w->index, x->site, x->thread, (u32)addr};
}

void shadow_end_epoch(struct block *b) {
    const struct module_info *info = b->launch->module->info;
    for (u32 i = 0; i < b->early_count; i++) {
        const struct early_read *e = &b->early[i];
        if (b->shadow[e->addr / 4].raced) continue;
        struct access x = {.w = &b->warps[e->warp], .site = e->site, .thread = e->thread, .does = word_for(&info->sites[e->site])};
        report_unwritten(&x, e->addr);
    }
    b->early_count = 0, b->epoch_alive = b->threads_alive;
}

/* Local memory has a word for each byte of a warp's lanes: the lanes that have written it since its function began. Only a
 * read of which no byte is written counts, because padding is copied together with the members of a structure. */
static u32 *local_written(const struct warp *w) { return w->block->local_written + (u64)w->index * w->local_size; }

void shadow_local_start(struct warp *w, u32 m, u32 offset, u32 bytes) {
    struct block *b = w->block;
    if (!b->local_written) b->local_written = calloc((u64)b->worker->capacity_warps * w->local_size, sizeof(u32));
    for (u32 i = offset; i < offset + bytes; i++) local_written(w)[i] &= ~m;
}

void shadow_local_access(struct warp *w, u32 site, u64 addr, u32 lane, u32 bytes, u32 element) {
    const struct module_info *info = w->block->launch->module->info;
    if (!w->block->local_written || addr + bytes > w->local_top) return;
    u32 *const written = local_written(w) + addr;
    for (u32 i = 0; i < bytes; i += element) {
        u32 any = 0;
        for (u32 k = i; k < i + element; k++) {
            any |= written[k];
            if (info->sites[site].kind != SITE_LOAD) written[k] |= 1u << lane;
        }
        if (info->sites[site].kind == SITE_LOAD && !(any >> lane & 1) && first_of_line(info, site))
            finding(w, site, w->index * 32 + lane, "init", "unwritten_local", "bytes=%u", element);
    }
}

/* ---- an access ------------------------------------------------------------------------------------------------------------ */

static struct allocation *allocation_at(struct warp *w, u32 site, u64 addr) {
    struct allocation **last = &w->block->worker->site_allocations[site];
    if (!*last || (*last)->freed || addr - (*last)->start >= (*last)->size) *last = memory_find(addr);
    return *last;
}

/* Records how an access orders other accesses. Returns whether races are checked. */
int shadow_order(struct warp *w, u32 site) {
    struct block *b = w->block;
    const struct module_info *info = b->launch->module->info;
    const struct site_info *s = &info->sites[site];
    if (!b->stamp) return 0;
    order_access(b);
    if (s->order & SITE_RELEASES) order_fence(b);
    if (s->kind == SITE_ATOMIC || s->order & SITE_STRONG) {
        order_strong_access(b);
        if (!(s->order & SITE_OBJECT)) w->synced = b->stamp; /* it may have waited for a flag */
    }
    return 1;
}

void shadow_access(struct warp *w, u32 site, struct block *whose, u64 addr, u32 lane, u32 bytes, const u8 *host, const u8 *value) {
    struct block *b = w->block;
    const struct module_info *info = b->launch->module->info;
    const struct site_info *s = &info->sites[site];
    struct access x = {
        .w = w, .sites = info->sites, .site = site, .thread = w->index * 32 + lane, .stamp = b->stamp, .addr = addr,
        .allocation = whose ? NULL : allocation_at(w, site, addr), .whose = whose, .step = (u16)(w->step & STEPS), .does = word_for(s),
    };
    if (!whose && !x.allocation) return;
    x.atomic = s->kind == SITE_ATOMIC, x.writes = s->kind != SITE_LOAD, x.reads = s->kind == SITE_LOAD || (x.atomic && !(s->order & SITE_OVERWRITES));
    x.same_value = value && memcmp(host, value, bytes) == 0;
    int races = shadow_order(w, site);
    x.stamp = b->stamp;
    if (!whose) {
        u64 offset = addr - x.allocation->start;
        for (u32 i = 0; x.reads && i < bytes; i += s->order / SITE_UNNEEDED ? 4 : bytes)
            if (!unneeded(s, i) && !written_all(x.allocation, offset + i, s->order / SITE_UNNEEDED ? 4 : bytes)) {
                report_uninitialised(&x, addr + i);
                break;
            }
        if (x.writes) written_mark(x.allocation, offset, bytes);
    }
    for (u64 at = addr; at < addr + bytes; at = (at & ~3ull) + 4) {
        struct cell *c = whose ? &whose->shadow[at / 4] : races ? global_cell(x.allocation, at) : NULL;
        if (!c) return;
        if (unneeded(s, (u32)(at - addr))) continue;
        u64 end = (at & ~3ull) + 4 < addr + bytes ? (at & ~3ull) + 4 : addr + bytes;
        x.bytes = (u8)(((1u << (end - at)) - 1) << (at & 3));
        if (whose && c->under_way) {
            report_under_way(&x, c, at);
            continue;
        }
        if (whose && races && x.writes && c->is_read) check_readers(&x, c, at);
        if (whose && s->kind == SITE_COPY) c->under_way = 1;
        else if (whose) {
            if (x.reads && whose == b && x.bytes & ~c->initialised) remember_early_read(&x, at);
            if (x.writes) c->initialised |= x.bytes, c->swizzle = 0;
        }
        if (!races) {
            if (c->under_way) remember_write(&x, c); /* so that reports name its line */
            continue;
        }
        against_write(&x, &c->write, c->write_bytes, c->write_step, at);
        against_write(&x, &c->update, c->update_bytes, c->update_step, at);
        if (x.writes) {
            against_reads(&x, c, at);
            remember_write(&x, c);
            if (whose && s->kind == SITE_STORE) plain_store(&x, c, at);
        } else {
            remember_read(&x, c);
            if (whose && s->order & SITE_ASYNC) asynchronous_read(&x, c, at);
        }
    }
}
