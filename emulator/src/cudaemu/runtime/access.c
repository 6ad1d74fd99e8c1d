/* The slow path of loads and stores, one lane at a time. It knows all address windows and reports all faults. */

#include "emu.h"

int rt_refill(struct warp *w, u32 site, u64 addr, u32 bytes) {
    struct allocation *a = memory_find(addr);
    if (!a) return 0;
    struct site *c = &w->sites[site];
    c->lo = a->start;
    c->hi = a->start + a->size;
    c->delta = a->delta;
    return addr + bytes <= c->hi;
}

static const char *did(struct warp *w, u32 site) {
    const struct site_info *s = &w->block->launch->module->info->sites[site];
    return s->kind == SITE_STORE || s->kind == SITE_COPY ? "write" : s->kind == SITE_ATOMIC ? "update" : "read";
}

/* The memory of an access, for shadow.c: its space and, for shared memory, the block that owns it. Before resolve(), whether
 * the access may be without effect if its address is bad. */
struct watched { int space; struct block *whose; int goes_on; };
#define SPACE_NONE (-1)

#define BAD(code, ...)                                                                                                 \
    do {                                                                                                               \
        watched->space = SPACE_NONE;                                                                                   \
        return bad_access(w, site, lane, watched->goes_on, code, __VA_ARGS__);                                                           \
    } while (0)

/* The host address of one lane's access. */
static void *resolve(struct warp *w, u32 site, int space, u64 *address, u32 lane, u32 bytes, struct watched *watched) {
    u64 addr = *address;
    if (space == SPACE_GENERIC) {
        if (is_shared(addr)) space = SPACE_SHARED, addr -= SHARED_WINDOW;
        else if (is_local(addr)) space = SPACE_LOCAL, addr -= LOCAL_WINDOW;
        else if (is_param(addr)) space = SPACE_PARAM;
        else space = SPACE_GLOBAL;
    }
    watched->space = space, watched->whose = w->block;
    *address = addr;
    if (space == SPACE_PARAM) {
        u64 offset = addr - PARAM_WINDOW;
        if (offset + bytes > w->block->launch->kernel->parameter_bytes)
            BAD(cudaErrorIllegalAddress, "past_parameters", "did:%s\nbytes=%u", did(w, site), bytes);
        return (void *)(w->params + offset);
    }
    if (addr & (bytes - 1))
        BAD(cudaErrorMisalignedAddress, "misaligned", "did:%s\nbytes=%u\nspace:%s\npast=%u", did(w, site), bytes,
            space == SPACE_SHARED ? "shared" : space == SPACE_LOCAL ? "local" : "global", (u32)(addr & (bytes - 1)));
    if (space == SPACE_SHARED) {
        if (UNLIKELY(addr > CLUSTER_OFFSET)) {
            struct block *peer = cluster_block(w->block, addr);
            if (!peer)
                BAD(cudaErrorIllegalAddress, w->block->cluster && (addr >> 24) - 1 < w->block->cluster->size ? "cluster_block_ended" : "cluster_block_missing",
                    "did:%s\npeer=%u", did(w, site), (u32)(addr >> 24) - 1);
            if ((addr & CLUSTER_OFFSET) + bytes > w->shared_size)
                BAD(cudaErrorIllegalAddress, "cluster_outside", "did:%s\nbytes=%u\noffset=%llu\nsize=%u\npeer=%u", did(w, site), bytes,
                    (unsigned long long)(addr & CLUSTER_OFFSET), w->shared_size, (u32)(addr >> 24) - 1);
            *address = addr & CLUSTER_OFFSET, watched->whose = peer;
            if (peer != w->block) peer->visit = (struct visit){w, site, lane, peer->cluster->phase};
            return peer->shared + *address;
        }
        if (UNLIKELY(addr < SHARED_START) && first_time(w->block->launch->module->info, site, ~8u)) /* no fault on a GPU */
            finding(w, site, lane, "memory", "system_shared", "did:%s\nbytes=%u\noffset=%llu\nbegin=%u", did(w, site), bytes, (unsigned long long)addr, SHARED_START);
        if (UNLIKELY(addr >= w->reserved && addr + bytes <= w->reserved + RESERVED_BYTES)) watched->space = SPACE_PARAM; /* holds no variables, but atomics on it order warps */
        else if (addr + bytes > w->shared_size) {
            const struct kernel_info *k = w->block->launch->kernel;
            char place[400] = "of:block\nrelation:whole";
            if (w->shared_size) shared_place(k, (u32)addr, w->shared_size, place, sizeof place);
            BAD(cudaErrorIllegalAddress, shared_is_dynamic(k, (u32)addr, w->shared_size) ? "past_dynamic_shared" : "past_shared",
                "did:%s\nbytes=%u\nshared=%u\nstatic=%u\ndynamic=%u\n%s", did(w, site), bytes, w->shared_size - SHARED_START, k->static_shared, w->dynamic_shared, place);
        }
        return w->shared + addr;
    }
    if (space == SPACE_LOCAL) {
        if (addr + bytes > w->local_size)
            BAD(cudaErrorIllegalAddress, "past_local", "did:%s\nbytes=%u\noffset=%llu\nsize=%u", did(w, site), bytes, (unsigned long long)addr, w->local_top);
        if (addr + bytes > w->local_top && first_time(w->block->launch->module->info, site, ~2u)) /* a GPU does not fault here */
            finding(w, site, lane, "memory", "past_local_arrays", "did:%s\nbytes=%u\noffset=%llu\nsize=%u", did(w, site), bytes, (unsigned long long)addr, w->local_top);
        return w->local + (addr >> 2) * 128 + lane * 4 + (addr & 3);
    }
    const struct site *c = &w->sites[site];
    if (!(addr >= c->lo && addr + bytes <= c->hi) && !rt_refill(w, site, addr, bytes)) {
        char where[512];
        const char *kind = memory_facts(addr, where, sizeof where);
        BAD(cudaErrorIllegalAddress, kind, "did:%s\nbytes=%u\n%s", did(w, site), bytes, where);
    }
    return (void *)(addr + (u64)w->sites[site].delta);
}

/* Records `bytes` of an access, which has elements of `element` bytes. */
static void watch(struct warp *w, u32 site, struct watched what, u64 addr, u32 lane, u32 bytes, u32 element, const u8 *host, const u8 *value) {
    if (values_on) return; /* a run before this one has looked for races */
    if (what.space == SPACE_SHARED || what.space == SPACE_GLOBAL) shadow_access(w, site, what.space == SPACE_SHARED ? what.whose : NULL, addr, lane, bytes, host, value);
    else if (what.space == SPACE_LOCAL) shadow_local_access(w, site, addr, lane, bytes, element);
    else if (what.space == SPACE_PARAM) shadow_order(w, site);
}

static void *address(struct warp *w, u32 site, int space, u64 addr, u32 lane, u32 bytes, int goes_on) {
    struct watched where = {.goes_on = goes_on};
    void *p = resolve(w, site, space, &addr, lane, bytes, &where);
    if (UNLIKELY(is_watched(w->block))) watch(w, site, where, addr, lane, bytes, bytes, p, NULL);
    return p;
}

void *rt_address(struct warp *w, u32 site, int space, u64 addr, u32 lane, u32 bytes) { return address(w, site, space, addr, lane, bytes, 0); }
void *atomic_address(struct warp *w, u32 site, int space, u64 addr, u32 lane, u32 bytes) { return address(w, site, space, addr, lane, bytes, is_watched(w->block)); }

void *quiet_address(struct warp *w, u32 site, int space, u64 addr, u32 lane) {
    struct watched where = {0};
    return resolve(w, site, space, &addr, lane, 1, &where);
}

void *rt_address_part(struct warp *w, u32 site, int space, u64 addr, u32 lane, u32 bytes, u32 used) {
    struct watched where = {0};
    void *p = resolve(w, site, space, &addr, lane, bytes, &where);
    if (UNLIKELY(is_watched(w->block))) watch(w, site, where, addr, lane, used, used, p, NULL);
    return p;
}

static int in_local(int space, u64 a) { return space == SPACE_LOCAL || (space == SPACE_GENERIC && is_local(a)); }

/* The host address of a lane's access: after a quick test, or from resolve(), which reports faults. `value` is what a
 * store in a watched program is about to write. */
static inline __attribute__((always_inline)) u8 *lane_host(struct warp *w, u32 site, int space, u64 addr, u32 lane, u32 bytes, u32 element, int watched, const u8 *value) {
    struct watched where = {.goes_on = watched};
    if (UNLIKELY(watched)) {
        u8 *p = resolve(w, site, space, &addr, lane, bytes, &where);
        watch(w, site, where, addr, lane, bytes, element, p, value);
        return p;
    }
    if (space == SPACE_SHARED) {
        if (LIKELY(addr + bytes <= w->shared_size && !(addr & (bytes - 1)))) return w->shared + addr;
    } else if (space == SPACE_GLOBAL || (space == SPACE_GENERIC && addr < SHARED_WINDOW)) {
        const struct site *c = &w->sites[site];
        if (LIKELY(addr >= c->lo && addr + bytes <= c->hi && !(addr & (bytes - 1)))) return (u8 *)(addr + (u64)c->delta);
    }
    return resolve(w, site, space, &addr, lane, bytes, &where);
}

#define LOAD_LANES(T, ROW)                                                                                             \
    for (u32 l = 0; l < 32; l++)                                                                                       \
        if (m >> l & 1) {                                                                                              \
            const u8 *p = lane_host(w, site, space, ADDRESS, l, whole, bytes, watched, NULL);                          \
            if (UNLIKELY(in_local(space, ADDRESS))) {                                                                  \
                for (u32 c = 0; c < count; c++) {                                                                      \
                    u32 low = ((u32)ADDRESS & 3) + c * (u32)sizeof(T);                                                 \
                    const u8 *q = p - ((u32)ADDRESS & 3) + (low >> 2) * 128 + (low & 3);                               \
                    ((ROW *)out)[32 * c + l] = sizeof(T) == 8 ? (ROW)(*(const u32a *)q | (u64) * (const u32a *)(q + 128) << 32) : (ROW) * (const T *)q; \
                }                                                                                                      \
            } else                                                                                                     \
                for (u32 c = 0; c < count; c++) ((ROW *)out)[32 * c + l] = ((const T *)p)[c];                          \
        }
#define STORE_LANES(T, ROW)                                                                                            \
    for (u32 l = 0; l < 32; l++)                                                                                       \
        if (m >> l & 1) {                                                                                              \
            T value[4];                                                                                                \
            if (UNLIKELY(watched))                                                                                     \
                for (u32 c = 0; c < count; c++) value[c] = (T)((const ROW *)in)[32 * c + l];                           \
            u8 *p = lane_host(w, site, space, ADDRESS, l, whole, bytes, watched, (const u8 *)value);                   \
            if (UNLIKELY(in_local(space, ADDRESS))) {                                                                  \
                for (u32 c = 0; c < count; c++) {                                                                      \
                    u32 low = ((u32)ADDRESS & 3) + c * (u32)sizeof(T);                                                 \
                    u8 *q = p - ((u32)ADDRESS & 3) + (low >> 2) * 128 + (low & 3);                                     \
                    u64 v = ((const ROW *)in)[32 * c + l];                                                             \
                    if (sizeof(T) == 8) *(u32a *)q = (u32)v, *(u32a *)(q + 128) = (u32)(v >> 32);                      \
                    else *(T *)q = (T)v;                                                                               \
                }                                                                                                      \
            } else                                                                                                     \
                for (u32 c = 0; c < count; c++) ((T *)p)[c] = (T)((const ROW *)in)[32 * c + l];                        \
        }
#define BY_SIZE(LANES)                                                                                                 \
    u32 whole = bytes * count;                                                                                         \
    const int watched = is_watched(w->block);                                                                          \
    switch (bytes) {                                                                                                   \
    case 1: LANES(u8, u32) break;                                                                                      \
    case 2: LANES(u16a, u32) break;                                                                                    \
    case 4: LANES(u32a, u32) break;                                                                                    \
    default: LANES(u64a, u64)                                                                                          \
    }

/* The usual case, 4-byte elements: one check and one gather or scatter for the whole warp. These functions return 0 if
 * the access must go lane by lane. */
static inline __attribute__((always_inline)) int vector_offsets_w(struct warp *w, const u32 *addr, u32 m, u32 whole, u32 shift) {
    if (w->shared_size < whole || is_watched(w->block)) return 0;
    u32 bad = 0;
    VU limit = BU((w->shared_size - whole) >> shift);
    for (int i = 0; i < PIECES; i++) {
        VU a = *(const VU *)&addr[i * W];
        a = (a >> shift) | (a << (32 - shift)); /* misaligned addresses become large */
        bad |= (u32)CMPU(6, a, limit) << (i * W);
    }
    return !(bad & m);
}
static int quick_load_w(struct warp *w, const u32 *addr, u32 m, u32 count, u32 *out) {
    if (!vector_offsets_w(w, addr, m, 4 * count, count == 4 ? 4 : count == 2 ? 3 : 2)) return 0;
    for (u32 c = 0; c < count; c++)
        for (int i = 0; i < PIECES; i++) *(VU *)&out[32 * c + i * W] = gather32(w->shared + 4 * c, *(const VU *)&addr[i * W], MK(m, i));
    return 1;
}
static int quick_store_w(struct warp *w, const u32 *addr, u32 m, u32 count, const u32 *in) {
    if (!vector_offsets_w(w, addr, m, 4 * count, count == 4 ? 4 : count == 2 ? 3 : 2)) return 0;
    for (u32 c = 0; c < count; c++)
        for (int i = 0; i < PIECES; i++) scatter32(w->shared + 4 * c, *(const VU *)&addr[i * W], *(const VU *)&in[32 * c + i * W], MK(m, i));
    return 1;
}
static int quick_q(struct warp *w, u32 site, const u64 *addr, u32 m, u32 count) {
    const struct site *c = &w->sites[site];
    u32 bad = 0, shift = count == 4 ? 4 : count == 2 ? 3 : 2, whole = 4 * count;
    if (c->hi - c->lo < whole || is_watched(w->block)) return 0;
    VQ lo = BQ(c->lo), limit = BQ((c->hi - c->lo - whole) >> shift);
    for (int i = 0; i < 2 * PIECES; i++) {
        VQ a = *(const VQ *)&addr[i * W / 2] - lo;
        a = (a >> shift) | (a << (64 - shift));
        bad |= (u32)CMPQ(6, a, limit) << (i * W / 2);
    }
    return !(bad & m);
}
static int quick_load_q(struct warp *w, u32 site, const u64 *addr, u32 m, u32 count, u32 *out) {
    if (!quick_q(w, site, addr, m, count)) return 0;
    const u8 *p = (const u8 *)w->sites[site].delta;
    for (u32 c = 0; c < count; c++)
        for (int i = 0; i < PIECES; i++)
            *(VU *)&out[32 * c + i * W] = gather32q(p + 4 * c, *(const VQ *)&addr[i * W], *(const VQ *)&addr[i * W + W / 2], MKQ(m, 2 * i), MKQ(m, 2 * i + 1));
    return 1;
}
static int quick_store_q(struct warp *w, u32 site, const u64 *addr, u32 m, u32 count, const u32 *in) {
    if (!quick_q(w, site, addr, m, count)) return 0;
    u8 *p = (u8 *)w->sites[site].delta;
    for (u32 c = 0; c < count; c++)
        for (int i = 0; i < PIECES; i++)
            scatter32q(p + 4 * c, *(const VQ *)&addr[i * W], *(const VQ *)&addr[i * W + W / 2], *(const VU *)&in[32 * c + i * W], MKQ(m, 2 * i), MKQ(m, 2 * i + 1));
    return 1;
}

/* The form of the lanes' addresses: _a base and stride, which wrap to 32 bits in shared and local memory; _w a row of
 * 32-bit addresses; _q a row of 64-bit addresses. */
#define ADDRESS (space == SPACE_SHARED || space == SPACE_LOCAL ? (u64)(u32)(base + (u64)stride * l) : base + (u64)stride * l)
void rt_load_a(struct warp *w, u32 site, int space, u64 base, i64 stride, u32 m, u32 bytes, u32 count, void *out) { BY_SIZE(LOAD_LANES) }
void rt_store_a(struct warp *w, u32 site, int space, u64 base, i64 stride, u32 m, u32 bytes, u32 count, const void *in) { BY_SIZE(STORE_LANES) }
#undef ADDRESS
#define ADDRESS ((u64)addr[l])
/* Words of which all lanes `m` have the same address: their place is found once. Local memory has a row of lanes for each. */
#define ONE_PLACE(anywhere, MOVE)                                                                                      \
    if (m && bytes == 4 && !is_watched(w->block)) {                                                                    \
        u32 l = lowest_lane(m), first = l, others = 0;                                                                 \
        const u64 same = ADDRESS;                                                                                      \
        const int local = in_local(space, same);                                                                       \
        for (l = 0; l < 32; l++) others |= (u32)(ADDRESS != same) << l;                                                \
        if (!(others & m) && (local || anywhere)) {                                                                    \
            u32a *p = (u32a *)lane_host(w, site, space, same, first, 4 * count, 4, 0, NULL) - (local ? first : 0);     \
            for (u32 c = 0; c < count; c++)                                                                            \
                for (l = 0; l < 32; l++)                                                                               \
                    if (m >> l & 1) MOVE;                                                                              \
            return;                                                                                                    \
        }                                                                                                              \
    }
void rt_load_w(struct warp *w, u32 site, int space, const u32 *addr, u32 m, u32 bytes, u32 count, void *out) {
    if (space == SPACE_SHARED && bytes == 4 && quick_load_w(w, addr, m, count, out)) return;
    ONE_PLACE(1, ((u32 *)out)[32 * c + l] = p[local ? 32 * c + l : c])
    BY_SIZE(LOAD_LANES)
}
void rt_store_w(struct warp *w, u32 site, int space, const u32 *addr, u32 m, u32 bytes, u32 count, const void *in) {
    if (space == SPACE_SHARED && bytes == 4 && quick_store_w(w, addr, m, count, in)) return;
    ONE_PLACE(0, p[32 * c + l] = ((const u32 *)in)[32 * c + l])
    BY_SIZE(STORE_LANES)
}
void rt_load_q(struct warp *w, u32 site, int space, const u64 *addr, u32 m, u32 bytes, u32 count, void *out) {
    if (space == SPACE_GLOBAL && bytes == 4 && quick_load_q(w, site, addr, m, count, out)) return;
    ONE_PLACE(1, ((u32 *)out)[32 * c + l] = p[local ? 32 * c + l : c])
    BY_SIZE(LOAD_LANES)
}
void rt_store_q(struct warp *w, u32 site, int space, const u64 *addr, u32 m, u32 bytes, u32 count, const void *in) {
    if (space == SPACE_GLOBAL && bytes == 4 && quick_store_q(w, site, addr, m, count, in)) return;
    ONE_PLACE(0, p[32 * c + l] = ((const u32 *)in)[32 * c + l])
    BY_SIZE(STORE_LANES)
}
#undef ADDRESS

void rt_shuffle_check(struct warp *w, u32 site, u32 m, u32 members) {
    u32 outside = m & ~members, missing = members & w->live & ~m;
    if (outside)
        finding(w, site, lowest_lane(outside), "sync", "mask_without_caller", "lanes:0x%08x\nmask:0x%08x", outside, members);
    else if (missing)
        finding(w, site, lowest_lane(m), "sync", "mask_not_reached", "lanes:0x%08x\nmask:0x%08x", missing, members);
}

void rt_divided_barrier(struct warp *w, u32 site, u32 m) {
    if (m != w->live)
        finding(w, site, lowest_lane(m), "sync", "barrier_in_branch", "lanes:0x%08x", m);
}

void rt_trap(struct warp *w, u32 site, u32 m) {
    if (m) rt_fault(w, site, lowest_lane(m), cudaErrorLaunchFailure, "trap", "did:trap");
}

u64 rt_alloca(struct warp *w, u32 site, u32 m, const u64 *bytes, u32 align) {
    u64 most = 0;
    for (u32 l = 0; l < 32; l++)
        if (m >> l & 1 && bytes[l] > most) most = bytes[l];
    u64 start = ((u64)w->local_top + align - 1) & ~((u64)align - 1), top = (start + most + 15) & ~15ull;
    if (top > w->local_size)
        rt_fault(w, site, lowest_lane(m), cudaErrorLaunchOutOfResources, "alloca_too_large", "bytes=%llu\nsize=%u\nused=%u", (unsigned long long)most, w->local_size, w->local_top);
    w->local_top = (u32)top;
    return start;
}

/* Frees nothing while the warp is divided, because its other lanes may have allocated memory in the meantime. */
void rt_stack_restore(struct warp *w, u32 m, u64 top) {
    if (m == w->live && top <= w->local_top) w->local_top = (u32)top;
}
