/* Warp functions (shuffles, votes, matches, reductions) whose lanes arrive separately.
 *
 * On a GPU a warp function returns when every lane of its mask that has not exited has called it with the same mask, at
 * the same place of the program or at another one (PTX ISA, shfl.sync and similar instructions). Diverged lanes arrive
 * one after the other: a lane stores its value and stays in front of the call until the others have arrived or no other
 * lane can continue. Then it sees the values that the lanes of its own mask stored, whatever these lanes do next. */

#include "emu.h"

u32 gather_lanes(struct warp *w, struct trip *t, u32 block, u32 site, u32 call) {
    struct apart *a = &t->apart;
    struct gathering *g = t->gathering;
    u32 m = t->m;
    const u32 *members = g->asked;
    const u32 held = a->held;
    for (u32 todo = m & ~g->complete; todo; todo &= todo - 1) {
        u32 l = lowest_lane(todo);
        g->offer[l] = g->brought[l], g->members[l] = members[l], g->call[l] = call;
    }
    g->offered |= m;
    for (u32 todo = m & ~g->complete; todo;) {
        u32 mask = members[lowest_lane(todo)], same = 0;
        for (u32 here = g->offered & ~g->complete; here; here &= here - 1) {
            u32 l = lowest_lane(here);
            same |= (u32)(g->members[l] == mask && g->call[l] == call) << l;
        }
        todo &= ~same;
        u32 missing = mask & w->live & ~same;
        if (missing & t->pending) {
            if (!(a->stuck & same)) continue;
            a->stuck = 0; /* releases this group only: afterwards others may be able to continue */
        }
        if (call && (missing || same & ~mask)) rt_shuffle_check(w, site, same, mask);
        for (u32 l = 0; l < 32; l++)
            if (same >> l & 1) {
                memcpy(g->seen[l], g->offer, sizeof g->offer);
                g->together.row[l] = g->seen[l], g->together.group[l] = same & mask;
            }
        g->complete |= same;
    }
    a->held = (a->held | m) & ~g->complete;
    t->pend[block] |= m & ~g->complete, t->pending |= m & ~g->complete;
    if (held | a->held) t->next = 0; /* lanes that were held may go on */
    m &= g->complete;
    g->complete &= ~m, g->offered &= ~m;
    return m;
}

void rt_check_members(struct warp *w, u32 site, u32 m, const u32 *members) {
    for (u32 todo = m; todo;) {
        u32 group = 0, mask = members[lowest_lane(todo)];
        for (u32 l = 0; l < 32; l++) group |= (u32)(members[l] == mask) << l;
        group &= m, todo &= ~group;
        if (group & ~mask || mask & w->live & ~group) rt_shuffle_check(w, site, group, mask);
    }
}

void rt_shuffle(const struct together *t, u32 m, const u32 *source, u32 *out) {
    for (; m; m &= m - 1) {
        u32 l = lowest_lane(m);
        out[l] = (u32)t->row[l][source[l]];
    }
}

void rt_ballot(const struct together *t, u32 m, u32 *out) {
    for (; m; m &= m - 1) {
        u32 l = lowest_lane(m);
        out[l] = 0;
        for (u32 k = 0; k < 32; k++) out[l] |= (u32)(t->group[l] >> k & t->row[l][k] & 1) << k;
    }
}

u32 rt_match(const struct together *t, u32 m, int all, u32 *out) {
    u32 same = 0;
    for (; m; m &= m - 1) {
        u32 l = lowest_lane(m);
        out[l] = 0;
        for (u32 k = 0; k < 32; k++) out[l] |= (u32)(t->group[l] >> k & 1 && t->row[l][k] == t->row[l][l]) << k;
        if (out[l] == t->group[l]) same |= 1u << l;
        else if (all) out[l] = 0;
    }
    return same;
}

#define REDUCE(name, T, step)                                                                                          \
    void rt_reduce_##name(const struct together *t, u32 m, u32 *out) {                                                 \
        for (; m; m &= m - 1) {                                                                                        \
            u32 l = lowest_lane(m);                                                                                    \
            T r = (T)t->row[l][l];                                                                                     \
            for (u32 rest = t->group[l] & ~(1u << l); rest; rest &= rest - 1) {                                        \
                T x = (T)t->row[l][lowest_lane(rest)];                                                                 \
                r = (T)(step);                                                                                         \
            }                                                                                                          \
            out[l] = (u32)r;                                                                                           \
        }                                                                                                              \
    }
REDUCE(add_u32, u32, r + x)
REDUCE(min_u32, u32, x < r ? x : r)
REDUCE(min_s32, i32, x < r ? x : r)
REDUCE(max_u32, u32, x > r ? x : r)
REDUCE(max_s32, i32, x > r ? x : r)
REDUCE(and_b32, u32, r & x)
REDUCE(or_b32, u32, r | x)
REDUCE(xor_b32, u32, r ^ x)
