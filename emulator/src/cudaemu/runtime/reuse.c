/* How far apart a block's uses of the same global memory are: whether a cache of a given size would serve them.
 *
 * Theory of operation. In a sampled run (counters.c) the first blocks of each kernel record the sectors of their loads, up
 * to REQUESTS of each load in each warp. When a block has ended, its warps' requests are replayed in turns, one of each
 * warp, as a GPU would about issue them. The reuse distance of a sector is the number of different lines that were used since
 * its last use (Mattson et al., "Evaluation techniques for storage hierarchies", 1970): a cache of more lines than that still
 * holds it. A Fenwick tree over time counts the lines whose last use is later than a given time. */

#include "emu.h"
#include "counters.h"
#include <stdlib.h>

#define REQUESTS 512u              /* recorded of each load, in each warp */
#define BLOCK_REQUESTS 65536u      /* recorded in a block */
#define LINE(sector) ((sector) >> 2)

struct requests { u64 *words; u32 used, capacity, left; u16 *seen; }; /* access, number of sectors, sectors; … */
struct line { u64 line; u32 last, sector[4]; }; /* times of last use; 0 is never */

void requests_start(struct block *b, u32 accesses) {
    for (u32 i = 0; i < b->warp_count; i++) {
        struct requests *r = b->warps[i].requests = calloc(1, sizeof *r);
        r->left = BLOCK_REQUESTS / b->warp_count;
        r->seen = calloc(accesses + 1, sizeof *r->seen);
    }
}

void requests_add(struct warp *w, u32 access, const u64 *addr, u32 m) {
    struct requests *r = w->requests;
    if (!r->left || r->seen[access] == REQUESTS) return;
    r->left--, r->seen[access]++;
    if (r->used + 34 > r->capacity) r->words = realloc(r->words, (r->capacity = 2 * r->capacity + 256) * sizeof *r->words);
    u64 *const n = &r->words[r->used + 1], *const sectors = n + 1;
    r->words[r->used] = access, *n = 0;
    for (; m; m &= m - 1) {
        u64 sector = addr[__builtin_ctz(m)] >> 5, i = *n;
        while (i > 0 && sectors[i - 1] != sector) i--;
        if (i == 0) sectors[(*n)++] = sector;
    }
    r->used += 2 + (u32)*n;
}

static struct line *line_of(struct line *table, u64 mask, u64 line) {
    u64 at = line * 0x9e3779b97f4a7c15ull >> 40 & mask;
    while (table[at].last && table[at].line != line) at = (at + 1) & mask;
    table[at].line = line;
    return &table[at];
}

/* Replays the warps' requests in turns and adds each sector's reuse distance to its access. */
void requests_end(struct block *b, struct reuse *reuse) {
    u64 total = 0, size = 64;
    for (u32 i = 0; i < b->warp_count; i++)
        for (u64 at = 0; at < b->warps[i].requests->used; at += 2 + b->warps[i].requests->words[at + 1]) total += b->warps[i].requests->words[at + 1];
    while (size < 2 * total) size *= 2;
    struct line *table = calloc(size, sizeof *table);
    u32 *tree = calloc(total + 2, sizeof *tree), *place = calloc(b->warp_count, sizeof *place), now = 0, in_use = 0;
    for (int more = 1; more;) {
        more = 0;
        for (u32 i = 0; i < b->warp_count; i++) {
            const struct requests *r = b->warps[i].requests;
            if (place[i] >= r->used) continue;
            const u64 *word = r->words + place[i];
            place[i] += 2 + (u32)word[1], more = 1;
            for (u32 s = 0; s < word[1]; s++) {
                const u64 sector = word[2 + s];
                u32 bucket = 0, later = in_use;
                struct line *line = line_of(table, size - 1, LINE(sector));
                u32 *last = &line->sector[sector & 3];
                now++;
                if (*last) {
                    for (u32 t = *last; t; t &= t - 1) later -= tree[t];
                    later -= line->last > *last; /* the line itself, through another of its sectors */
                    while (bucket + 2 < REUSE_BUCKETS && later >> bucket) bucket++;
                    reuse[word[0]].near[bucket]++;
                } else
                    reuse[word[0]].near[REUSE_BUCKETS - 1]++;
                if (line->last) for (u32 t = line->last; t <= total; t += t & -t) tree[t]--;
                else in_use++;
                for (u32 t = now; t <= total; t += t & -t) tree[t]++;
                line->last = *last = now;
                if (!reuse[word[0]].array_bytes) {
                    const struct allocation *a = memory_find(sector << 5);
                    if (a) reuse[word[0]].array = a->start, reuse[word[0]].array_bytes = a->size;
                }
            }
        }
    }
    free(table), free(tree), free(place);
    for (u32 i = 0; i < b->warp_count; i++) {
        free(b->warps[i].requests->words), free(b->warps[i].requests->seen), free(b->warps[i].requests);
        b->warps[i].requests = NULL;
    }
}
