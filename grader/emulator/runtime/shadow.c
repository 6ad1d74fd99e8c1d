/* Races and uninitialised reads in shared memory (--sanitize race,init).
 *
 * Programs built with these sanitizers send every access to shared memory through rt_address, which calls here. Each
 * 4-byte word has a cell that remembers its last write and last read: when (in barrier epochs), at which site, by which
 * thread. Every barrier that is released begins a new epoch of the block. Two accesses of one epoch by different warps,
 * one of them a write and not both atomic, have no order that the program asks for: that is a race, also when this
 * schedule happened to give the right result. Any barrier, also a named one for some warps only, counts as ordering, so
 * nothing is reported that is none; a race hidden by an unrelated barrier is missed. Lanes of one warp run in step. */

#include "emu.h"
#include <stdlib.h>

struct cell {
    u32 write_epoch, write_site, read_epoch, read_site; /* epoch 0: never */
    u16 write_thread, read_thread;
    u8 write_atomic, written;
    u8 several_readers; /* warps, in read_epoch */
};

struct seen { u32 a, b; };
#define PAIRS 256

void shadow_start(struct block *b) {
    u32 words = (b->launch->shared_bytes + 3) / 4;
    if (b->shadow_words < words) {
        free(b->shadow);
        b->shadow = malloc(words * sizeof *b->shadow);
        b->shadow_words = words;
    }
    memset(b->shadow, 0, words * sizeof *b->shadow);
    b->epoch = 1;
}

/* Whether this pair of places is new; each is reported once in a run. */
static int first_time(u32 a, u32 b) {
    static struct seen known[PAIRS];
    static u32 count;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int new = 1;
    pthread_mutex_lock(&lock);
    for (u32 i = 0; i < count; i++)
        if (known[i].a == a && known[i].b == b) new = 0;
    if (new && count < PAIRS) known[count++] = (struct seen){a, b};
    pthread_mutex_unlock(&lock);
    return new;
}

static void race(struct warp *w, u32 site, u32 lane, u32 offset, const char *this_does, const char *other_did, u32 other_site, u32 other, const char *severity) {
    const struct module_info *info = w->block->launch->module->info;
    if (!first_time(site, other_site)) return;
    u32 x = other % w->ntid[0], y = other / w->ntid[0] % w->ntid[1], z = other / w->ntid[0] / w->ntid[1];
    diagnose(w, site, lane, severity, "race", "Put __syncthreads() between the two accesses, where all threads of the block reach it.",
             "%s of shared memory at offset %u races with the %s by thread (%u,%u,%u) of another warp at line %u: no barrier lies between them", this_does,
             offset, other_did, x, y, z, info->sites[other_site].line);
}

void shadow_access(struct warp *w, u32 site, u64 addr, u32 lane, u32 bytes) {
    struct block *b = w->block;
    const struct module_info *info = b->launch->module->info;
    int kind = info->sites[site].kind;
    u16 thread = (u16)(w->index * 32 + lane);
    for (u32 word = (u32)addr / 4; word <= (u32)(addr + bytes - 1) / 4; word++) {
        struct cell *c = &b->shadow[word];
        int other_wrote = c->write_epoch == b->epoch && c->write_thread / 32 != w->index;
        if (kind == SITE_LOAD) {
            if (info->sanitize & SANITIZE_INIT && !c->written && first_time(site, ~0u))
                diagnose(w, site, lane, "warning", "init", "Store a value in every element before it is read, for the last tile too.",
                         "read of shared memory at offset %u, which no thread of the block has written", word * 4);
            if (info->sanitize & SANITIZE_RACE && other_wrote)
                race(w, site, lane, word * 4, "read", c->write_atomic ? "atomic update" : "write", c->write_site, c->write_thread, "error");
            c->several_readers = c->read_epoch == b->epoch && (c->several_readers || c->read_thread / 32 != w->index);
            c->read_epoch = b->epoch, c->read_site = site, c->read_thread = thread;
            continue;
        }
        int atomic = kind == SITE_ATOMIC;
        if (info->sanitize & SANITIZE_RACE) {
            if (other_wrote && !(atomic && c->write_atomic))
                race(w, site, lane, word * 4, atomic ? "atomic update" : "write", c->write_atomic ? "atomic update" : "write", c->write_site, c->write_thread, "warning");
            if (c->read_epoch == b->epoch && (c->read_thread / 32 != w->index || c->several_readers))
                race(w, site, lane, word * 4, atomic ? "atomic update" : "write", "read", c->read_site, c->read_thread, "error");
        }
        c->write_epoch = b->epoch, c->write_site = site, c->write_thread = thread, c->write_atomic = (u8)atomic, c->written = 1;
    }
}
