/* Accesses to shared memory by asynchronous operations: copies and products of warpgroups (--sanitize race,init).
 *
 * A copy to shared memory is a write at its issue and again when it arrives. Between the two every access to its bytes is
 * reported as a race, even one by the same thread.
 *
 * A product, or a copy from shared memory, reads from its issue until its group has been waited for; a write in between is
 * reported. A bit for each chunk of 16 bytes says what an operation reads; `is_read` of a cell says that one may read it.
 *
 * All of them use the asynchronous proxy (PTX ISA, "Proxies"), which sees an ordinary store only after a fence.proxy.async by
 * the thread that stored, or by a thread that a barrier has ordered after the store. Words whose last store no fence has
 * covered yet are marked `unfenced` and listed. */

#include "shadow.h"
#include <stdlib.h>

#define CHUNK 16u

struct reader { u32 number, site, thread; u64 *chunks; };

struct proxies {
    u32 *unfenced; /* indices of words; some of them may no longer be marked */
    u32 unfenced_count, unfenced_capacity;
    struct reader *readers; /* the operations that are reading; read_begins adds at the end */
    u32 reader_count, reader_capacity, next;
};

static struct proxies *proxies_of(struct block *b) {
    if (!b->proxies) b->proxies = calloc(1, sizeof *b->proxies);
    return b->proxies;
}

void proxies_start(struct block *b) {
    struct proxies *p = b->proxies;
    if (!p) return;
    for (u32 i = 0; i < p->reader_count; i++) free(p->readers[i].chunks);
    p->unfenced_count = p->reader_count = 0;
}

void proxies_end(struct block *b) {
    if (!b->proxies) return;
    proxies_start(b);
    free(b->proxies->unfenced), free(b->proxies->readers), free(b->proxies);
    b->proxies = NULL;
}

static struct access access_by(struct warp *w, u32 site, u32 lane) {
    const struct site_info *sites = w->block->launch->module->info->sites;
    return (struct access){.w = w, .sites = sites, .site = site, .thread = w->index * 32 + lane, .stamp = w->block->stamp, .whose = w->block,
                           .step = (u16)(w->step & STEPS), .bytes = 15, .does = word_for(&sites[site])};
}

static void thread_name(const struct warp *w, u32 thread, char *text, size_t size) {
    snprintf(text, size, "other_thread:(%u,%u,%u)", thread % w->ntid[0], thread / w->ntid[0] % w->ntid[1], thread / w->ntid[0] / w->ntid[1]);
}

/* ---- copies to shared memory ---------------------------------------------------------------------------------------- */

void report_under_way(const struct access *x, const struct cell *c, u64 addr) {
    const struct module_info *info = x->w->block->launch->module->info;
    const struct site_info *copy = &x->sites[c->write.at >> 10];
    const int overwrites = x->writes && !x->atomic, bulk = copy->order & SITE_ASYNC;
    const u32 thread = c->write.at & 1023;
    if (!first_time(info, x->sites[x->site].line << 4 | 15, copy->line)) return;
    char facts[1800], who[80] = "", wait[80] = "";
    if (thread != x->thread) thread_name(x->w, thread, who, sizeof who);
    if (bulk && x->w->early_wait) snprintf(wait, sizeof wait, "wait=%u", x->sites[x->w->early_wait - 1].line);
    race_facts(x, addr, copy, facts, sizeof facts);
    finding(x->w, x->site, x->thread, "race", overwrites ? "race_of_writes" : "race", "how:%s\nbetween:copy\n%s\n%s\n%s", wait[0] ? "wrong_parity" : bulk ? "bulk_copy" : "copy", wait, facts, who);
}

void shadow_arrival(struct warp *w, struct block *target, u32 site, u64 addr, u32 lane, u32 bytes, u32 swizzle, int on_time) {
    struct block *b = w->block;
    if (b->stamp) order_access(b);
    const struct access x = access_by(w, site, lane);
    for (u64 at = addr; target && at < addr + bytes; at += 4) {
        struct cell *c = &target->shadow[at / 4];
        c->under_way = 0, c->initialised = 15, c->unfenced = 0, c->swizzle = swizzle & 15;
        if (on_time) remember_write(&x, c);
    }
}

/* ---- reads of shared memory ----------------------------------------------------------------------------------------- */

u32 read_begins(struct warp *w, u32 site, u32 lane) {
    struct proxies *p = proxies_of(w->block);
    MAKE_ROOM(p->readers, p->reader_count, p->reader_capacity);
    p->readers[p->reader_count++] = (struct reader){++p->next, site, w->index * 32 + lane, calloc(w->shared_size / CHUNK / 64 + 1, sizeof(u64))};
    return p->next;
}

/* The operation may have read until now, so its reads also count as made now. */
void read_ends(struct warp *w, u32 number) {
    struct proxies *p = proxies_of(w->block);
    u32 i = 0;
    while (i < p->reader_count && p->readers[i].number != number) i++;
    if (i == p->reader_count) return;
    const struct reader r = p->readers[i];
    p->readers[i] = p->readers[--p->reader_count];
    const struct access x = access_by(w, r.site, r.thread % 32);
    for (u32 chunk = 0; w->block->stamp && chunk < w->shared_size / CHUNK; chunk++)
        if (r.chunks[chunk / 64] >> chunk % 64 & 1)
            for (u32 word = 0; word < CHUNK / 4; word++) remember_read(&x, &w->block->shadow[chunk * CHUNK / 4 + word]);
    free(r.chunks);
}

void check_readers(const struct access *x, struct cell *c, u64 addr) {
    const struct module_info *info = x->w->block->launch->module->info;
    const struct proxies *p = x->whose->proxies;
    c->is_read = 0;
    for (u32 i = 0; p && i < p->reader_count; i++) {
        const struct reader *r = &p->readers[i];
        if (!(r->chunks[addr / CHUNK / 64] >> addr / CHUNK % 64 & 1)) continue;
        c->is_read = 1;
        const struct site_info *s = &x->sites[r->site];
        const int product = s->kind == SITE_LOAD && s->bytes == 0;
        if (x->same_value || !first_time(info, x->sites[x->site].line << 4 | 14, s->line)) continue;
        char who[80], facts[1800];
        thread_name(x->w, r->thread, who, sizeof who);
        race_facts(x, addr, s, facts, sizeof facts);
        finding(x->w, x->site, x->thread, "race", "race", "how:%s\nbetween:copy\n%s\n%s", product ? "operand" : "bulk_read", facts, who);
    }
}

/* ---- ordinary stores before asynchronous reads ---------------------------------------------------------------------- */

void plain_store(const struct access *x, struct cell *c, u64 addr) {
    if (!HAS_CLUSTERS || x->whose != x->w->block) return;
    struct proxies *p = proxies_of(x->whose);
    if (c->unfenced) return;
    c->unfenced = 1;
    MAKE_ROOM(p->unfenced, p->unfenced_count, p->unfenced_capacity);
    p->unfenced[p->unfenced_count++] = (u32)addr / 4;
}

void rt_proxy_fence(struct warp *w, u32 m, int only_objects) {
    struct block *b = w->block;
    struct proxies *p = b->proxies;
    const struct site_info *sites = b->launch->module->info->sites;
    u32 left = 0;
    u64 block;
    for (u32 i = 0; p && i < p->unfenced_count; i++) {
        struct cell *c = &b->shadow[p->unfenced[i]];
        const u32 thread = c->write.at & 1023;
        const int own = thread / 32 == w->index && m >> thread % 32 & 1;
        if ((own || order_of(w, c->write.stamp, &block) == ORDER_BEFORE) && (!only_objects || sites[c->write.at >> 10].order & SITE_OBJECT)) c->unfenced = 0;
        if (c->unfenced) p->unfenced[left++] = p->unfenced[i];
    }
    if (p) p->unfenced_count = left;
}

static void report_unfenced(const struct access *x, const struct cell *c, u64 addr) {
    const struct module_info *info = x->w->block->launch->module->info;
    const struct site_info *store = &x->sites[c->write.at >> 10];
    const int object = store->order & SITE_OBJECT;
    if (!first_time(info, x->sites[x->site].line << 4 | 13, store->line)) return;
    char who[80] = "", facts[1800];
    if ((c->write.at & 1023) != x->thread) thread_name(x->w, c->write.at & 1023, who, sizeof who);
    race_facts(x, addr, store, facts, sizeof facts);
    finding(x->w, x->site, x->thread, "race", "race", "how:%s\nbetween:copy\n%s\n%s", object ? "object_unfenced" : "unfenced", facts, who);
}

void asynchronous_read(const struct access *x, struct cell *c, u64 addr) {
    struct proxies *p = proxies_of(x->whose);
    if (c->unfenced) report_unfenced(x, c, addr);
    if (!p->reader_count || x->whose != x->w->block) return;
    c->is_read = 1;
    p->readers[p->reader_count - 1].chunks[addr / CHUNK / 64] |= 1ull << addr / CHUNK % 64;
}

void check_object(struct warp *w, u32 site, u32 lane, u32 addr) {
    if (!w->block->stamp) return;
    const struct access x = access_by(w, site, lane);
    const struct cell *c = &w->block->shadow[addr / 4];
    if (c->unfenced) report_unfenced(&x, c, addr);
}

/* ---- layouts -------------------------------------------------------------------------------------------------------- */

void check_swizzle(struct warp *w, u32 site, u32 addr, u32 swizzle) {
    const struct module_info *info = w->block->launch->module->info;
    const struct cell *c = &w->block->shadow[addr / 4];
    const struct site_info *copy = &info->sites[c->write.at >> 10];
    if (!c->swizzle || c->swizzle == swizzle || c->under_way || !first_time(info, info->sites[site].line << 4 | 12, copy->line)) return;
    static const char *const names[] = {"none", "32", "64", "128"};
    finding(w, site, lowest_lane(w->live), "memory", "swizzle_differs", "says:%s\nwrote:%s\nline_of=%u", names[lowest_lane(swizzle)], names[lowest_lane(c->swizzle)], copy->line);
}
