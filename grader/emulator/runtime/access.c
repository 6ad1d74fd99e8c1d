/* Loads and stores that left the fast path: a lane at a time, every address window, every fault. */

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

static const char *access_word(struct warp *w, u32 site) {
    const struct site_info *s = &w->block->launch->module->info->sites[site];
    return s->kind == SITE_STORE ? "write" : s->kind == SITE_ATOMIC ? "atomic operation" : "read";
}

static const char OUTSIDE[] = "Check the index against the size of the array, for the last block and the last thread too.";

void *rt_address(struct warp *w, u32 site, int space, u64 addr, u32 lane, u32 bytes) {
    if (space == SPACE_GENERIC) {
        if (is_shared(addr)) space = SPACE_SHARED, addr -= SHARED_WINDOW;
        else if (is_local(addr)) space = SPACE_LOCAL, addr -= LOCAL_WINDOW;
        else if (is_param(addr)) space = SPACE_PARAM;
        else space = SPACE_GLOBAL;
    }
    if (space == SPACE_PARAM) {
        u64 offset = addr - PARAM_WINDOW;
        if (offset + bytes > w->block->launch->kernel->parameter_bytes)
            rt_fault(w, site, lane, cudaErrorIllegalAddress, "%s of %u bytes past the kernel's parameters", access_word(w, site), bytes);
        return (void *)(w->params + offset);
    }
    if (addr & (bytes - 1))
        rt_fault(w, site, lane, cudaErrorMisalignedAddress, "misaligned %s of %u bytes at address 0x%llx in %s memory: the address must be a multiple of %u",
                 access_word(w, site), bytes, (unsigned long long)addr,
                 space == SPACE_SHARED ? "shared" : space == SPACE_LOCAL ? "local" : "global", bytes);
    if (space == SPACE_SHARED) {
        if (addr + bytes > w->shared_size)
            rt_fault(w, site, lane, cudaErrorIllegalAddress, "%s of %u bytes at offset %llu of shared memory, of which the block has %u bytes (%u static, %u dynamic)",
                     access_word(w, site), bytes, (unsigned long long)addr, w->shared_size, w->block->launch->kernel->static_shared, w->dynamic_shared);
        return w->shared + addr;
    }
    if (space == SPACE_LOCAL) {
        if (addr + bytes > w->local_size)
            rt_fault(w, site, lane, cudaErrorIllegalAddress, "%s of %u bytes at offset %llu of local memory (local arrays), of which the thread has %u bytes",
                     access_word(w, site), bytes, (unsigned long long)addr, w->local_size);
        return w->local + (addr >> 2) * 128 + lane * 4 + (addr & 3);
    }
    const struct site *c = &w->sites[site];
    if (!(addr >= c->lo && addr + bytes <= c->hi) && !rt_refill(w, site, addr, bytes)) {
        char where[512];
        memory_describe(addr, bytes, where, sizeof where);
        rt_fault(w, site, lane, cudaErrorIllegalAddress, "%s of %u bytes at %s", access_word(w, site), bytes, where);
    }
    return (void *)(addr + (u64)w->sites[site].delta);
}

static int in_local(int space, u64 a) { return space == SPACE_LOCAL || (space == SPACE_GENERIC && is_local(a)); }

static u64 read_bytes(const u8 *p, u32 bytes) {
    switch (bytes) {
    case 1: return *p;
    case 2: return *(const u16a *)p;
    case 4: return *(const u32a *)p;
    default: return *(const u64a *)p;
    }
}
static void write_bytes(u8 *p, u32 bytes, u64 v) {
    switch (bytes) {
    case 1: *p = (u8)v; break;
    case 2: *(u16a *)p = (u16)v; break;
    case 4: *(u32a *)p = (u32)v; break;
    default: *(u64a *)p = v; break;
    }
}

void rt_load(struct warp *w, u32 site, int space, const u64 *addr, u32 m, u32 bytes, u32 count, u64 *out) {
    for (u32 l = 0; l < 32; l++) {
        if (!(m >> l & 1)) {
            for (u32 c = 0; c < count; c++) out[32 * c + l] = 0;
            continue;
        }
        const u8 *p = rt_address(w, site, space, addr[l], l, bytes * count);
        int local = in_local(space, addr[l]);
        for (u32 c = 0; c < count; c++) {
            u64 at = (u64)c * bytes;
            if (!local) out[32 * c + l] = read_bytes(p + at, bytes);
            else if (bytes == 8) out[32 * c + l] = *(const u32a *)(p + (at >> 2) * 128) | (u64) * (const u32a *)(p + (at >> 2) * 128 + 128) << 32;
            else {
                u64 low = (addr[l] & 3) + at;
                out[32 * c + l] = read_bytes(p - (addr[l] & 3) + (low >> 2) * 128 + (low & 3), bytes);
            }
        }
    }
}

void rt_store(struct warp *w, u32 site, int space, const u64 *addr, u32 m, u32 bytes, u32 count, const u64 *in) {
    for (u32 l = 0; l < 32; l++) {
        if (!(m >> l & 1)) continue;
        u8 *p = rt_address(w, site, space, addr[l], l, bytes * count);
        int local = in_local(space, addr[l]);
        for (u32 c = 0; c < count; c++) {
            u64 at = (u64)c * bytes, v = in[32 * c + l];
            if (!local) write_bytes(p + at, bytes, v);
            else if (bytes == 8) {
                *(u32a *)(p + (at >> 2) * 128) = (u32)v;
                *(u32a *)(p + (at >> 2) * 128 + 128) = (u32)(v >> 32);
            } else {
                u64 low = (addr[l] & 3) + at;
                write_bytes(p - (addr[l] & 3) + (low >> 2) * 128 + (low & 3), bytes, v);
            }
        }
    }
}

void rt_shuffle_check(struct warp *w, u32 site, u32 m, u32 members) {
    u32 outside = m & ~members, missing = members & w->live & ~m;
    if (outside)
        diagnose(w, site, lowest_lane(outside), "error", "sync", "Name every calling lane in the mask.",
                 "lanes 0x%08x call a warp function whose mask 0x%08x does not name them", outside, members);
    else if (missing)
        diagnose(w, site, lowest_lane(m), "error", "sync",
                 "Let all lanes of the mask reach the same call, or pass __activemask() of a ballot taken before the branch.",
                 "the mask 0x%08x of a warp function names lanes 0x%08x, which are not here (they took another branch)", members, missing);
}

void rt_divided_barrier(struct warp *w, u32 site, u32 m) {
    if (m != w->live)
        diagnose(w, site, lowest_lane(m), "error", "sync", "Move __syncthreads() out of the branch, so that all threads of the block reach the same call.",
                 "__syncthreads() in a branch that only lanes 0x%08x of the warp take", m);
}

void rt_trap(struct warp *w, u32 site, u32 m) {
    if (m) rt_fault(w, site, lowest_lane(m), cudaErrorLaunchFailure, "the kernel executed a trap instruction (__trap)");
}
