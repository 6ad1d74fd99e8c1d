/* printf and assert in kernels. Arguments are in the thread's local memory, promoted as in C, each at a multiple of its
 * size. Lines of different threads never mix. */

#include "emu.h"
#include <stdlib.h>

static u64 read_local(struct warp *w, u32 lane, u64 address, u32 bytes) {
    u64 r = 0;
    for (u32 i = 0; i < bytes; i++) {
        u64 a = address + i;
        u8 byte;
        if (is_local(a)) {
            a -= LOCAL_WINDOW;
            byte = a < w->local_size ? w->local[(a >> 2) * 128 + lane * 4 + (a & 3)] : 0;
        } else {
            struct allocation *found = memory_find(a);
            byte = found ? *(u8 *)(a + (u64)found->delta) : 0;
        }
        r |= (u64)byte << (8 * i);
    }
    return r;
}

static void read_string(struct warp *w, u32 lane, u64 address, char *out, size_t size) {
    size_t i = 0;
    for (; i + 1 < size; i++) {
        out[i] = (char)read_local(w, lane, address + i, 1);
        if (!out[i]) break;
    }
    out[i] = 0;
}

u32 rt_vprintf(struct warp *w, u32 lane, u64 format_address, u64 arguments) {
    char format[4096], line[8192];
    read_string(w, lane, format_address, format, sizeof format);
    size_t n = 0;
    u32 converted = 0;
    u64 at = arguments;
#define ROOM (n < sizeof line ? sizeof line - n : 0)
    for (const char *p = format; *p; p++) {
        if (*p != '%') {
            if (n < sizeof line - 1) line[n++] = *p;
            continue;
        }
        char spec[64] = "%";
        size_t k = 1;
        p++;
        if (*p == '%') {
            if (n < sizeof line - 1) line[n++] = '%';
            continue;
        }
        while (*p && strchr("-+ #0123456789.*", *p) && k < sizeof spec - 24) {
            if (*p == '*') {
                at = (at + 3) & ~3ull;
                k += (size_t)snprintf(spec + k, 16, "%d", (int)read_local(w, lane, at, 4));
                at += 4;
            } else spec[k++] = *p;
            p++;
        }
        int wide = 0;
        while (*p && strchr("hlLqjzt", *p)) {
            if (*p != 'h') wide = 1;
            p++;
        }
        char c = *p;
        if (!c) break;
        converted++;
        if (strchr("eEfFgGaA", c)) {
            at = (at + 7) & ~7ull;
            spec[k++] = c, spec[k] = 0;
            n += (size_t)snprintf(line + n, ROOM, spec, q2d(read_local(w, lane, at, 8)));
            at += 8;
        } else if (c == 's') {
            at = (at + 7) & ~7ull;
            char text[2048];
            u64 address = read_local(w, lane, at, 8);
            at += 8;
            read_string(w, lane, address, text, sizeof text);
            spec[k++] = 's', spec[k] = 0;
            n += (size_t)snprintf(line + n, ROOM, spec, text);
        } else if (c == 'p') {
            at = (at + 7) & ~7ull;
            spec[k++] = 'p', spec[k] = 0;
            n += (size_t)snprintf(line + n, ROOM, spec, (void *)read_local(w, lane, at, 8));
            at += 8;
        } else {
            u32 bytes = wide ? 8 : 4;
            at = (at + bytes - 1) & ~(u64)(bytes - 1);
            u64 v = read_local(w, lane, at, bytes);
            at += bytes;
            if (wide) spec[k++] = 'l', spec[k++] = 'l';
            spec[k++] = c, spec[k] = 0;
            n += wide ? (size_t)snprintf(line + n, ROOM, spec, (long long)v) : (size_t)snprintf(line + n, ROOM, spec, (int)v);
        }
        if (n >= sizeof line) n = sizeof line - 1;
    }
    fwrite(line, 1, n, stdout);
    return converted;
}

void rt_assert(struct warp *w, u32 lane, u64 message, u64 file, u32 line, u64 function) {
    char m[512], f[512], g[512];
    u32 xyz[3];
    read_string(w, lane, message, m, sizeof m);
    read_string(w, lane, file, f, sizeof f);
    read_string(w, lane, function, g, sizeof g);
    thread_of(w, lane, xyz);
    fflush(stdout);
    fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", f, line, g, w->ctaid[0], w->ctaid[1], w->ctaid[2],
            xyz[0], xyz[1], xyz[2], m);
    rt_fault(w, ~0u, lane, cudaErrorAssert, "assertion", "condition:%s\nother_file:%s\nother_line=%u", m, f, line);
}

u64 rt_malloc(struct warp *w, u32 lane, u64 bytes) {
    (void)w, (void)lane;
    struct allocation *a = memory_allocate(bytes ? bytes : 1, 16, MEMORY_HEAP, "malloc in a kernel");
    return a ? a->start : 0;
}
void rt_free(struct warp *w, u32 lane, u64 address) {
    if (memory_free(address, MEMORY_HEAP, "free in a kernel")) rt_fault(w, ~0u, lane, cudaErrorIllegalAddress, "kernel_free", "of:heap");
    struct launch *l = w->block->launch;
    memset(w->sites, 0, l->module->info->site_count * sizeof *w->sites); /* forget the bounds of freed allocations */
}
