/* __syncwarp(): checks that all lanes of its mask call it.
 *
 * On a GPU the callers wait until every lane of the mask has called __syncwarp() with that mask, at this place or at
 * another. Here the lanes that are together continue immediately, and the missing lanes are recorded: those in another
 * branch may still arrive. Lanes that have not arrived when the warp reaches the block's barrier, or ends, are reported. */

#include "emu.h"
#include <stdlib.h>

struct wait { u32 members, arrived, site; struct wait *next; };
#define WAITS_MAXIMUM 64

static void report(struct warp *w, const struct wait *p) {
    u32 missing = p->members & ~p->arrived;
    if (!first_time(w->block->launch->module->info, p->site, ~1u)) return;
    finding(w, p->site, lowest_lane(p->arrived), "sync", "syncwarp_unmet", "lanes:0x%08x\nmissing:0x%08x\nmask:0x%08x", p->arrived, missing, p->members);
}

void syncwarp_unmet(struct warp *w) {
    while (w->waits) {
        struct wait *p = w->waits;
        report(w, p);
        w->waits = p->next;
        free(p);
    }
}

static void meet(struct warp *w, u32 site, u32 m, u32 members) {
    if (m & ~members) {
        rt_shuffle_check(w, site, m, members);
        return;
    }
    u32 count = 0;
    int complete = !(members & w->live & ~m);
    for (struct wait **at = &w->waits; *at; count++) {
        struct wait *p = *at;
        int late = p->members == members && !(p->arrived & m);
        if (late) p->arrived |= m;
        else if (complete && p->members == members) report(w, p); /* these lanes continued without the others */
        if ((late && !(members & w->live & ~p->arrived)) || (!late && complete && p->members == members)) {
            *at = p->next;
            free(p);
            if (late) return;
            continue;
        }
        if (late) return;
        at = &p->next;
    }
    if (complete || count >= WAITS_MAXIMUM) return;
    struct wait **end = &w->waits;
    while (*end) end = &(*end)->next;
    *end = malloc(sizeof **end);
    **end = (struct wait){members, m, site, NULL};
}

void rt_syncwarp(struct warp *w, u32 site, u32 m, u32 members) { meet(w, site, m, members); }

/* Lanes with different masks form groups that wait separately. */
void rt_syncwarp_groups(struct warp *w, u32 site, u32 m, const u32 *members) {
    for (u32 todo = m; todo;) {
        u32 group = 0, mask = members[lowest_lane(todo)];
        for (u32 l = 0; l < 32; l++)
            if (todo >> l & 1 && members[l] == mask) group |= 1u << l;
        todo &= ~group;
        if (group & ~mask || mask & w->live & ~group || w->waits) meet(w, site, group, mask);
    }
}
