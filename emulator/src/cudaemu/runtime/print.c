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

#define MOST_WIDE 4096 /* characters of one number, and of a line twice that */

/* A width or a precision: digits, or * for an argument, which moves `at`. */
static int read_number(struct warp *w, u32 lane, const char **p, u64 *at) {
    int value = 0;
    if (**p == '*') {
        *at = (*at + 3) & ~3ull;
        value = (int)read_local(w, lane, *at, 4);
        *at += 4, ++*p;
    } else
        for (; **p >= '0' && **p <= '9'; ++*p)
            if (value < MOST_WIDE) value = value * 10 + (**p - '0');
    return value < -MOST_WIDE ? -MOST_WIDE : value > MOST_WIDE ? MOST_WIDE : value;
}

/* One conversion, into `out`; `p` is behind its %. Returns the bytes written and moves `p`, and `at` behind its argument.
 * What is none of CUDA's conversions, such as %n, is left: 0. The host's printf only gets formats made here. */
static size_t convert(struct warp *w, u32 lane, const char **p, u64 *at, char *out, size_t room) {
    const char *q = *p;
    char spec[16] = "%", text[2048];
    size_t k = 1;
    u64 next = *at, bits;
    for (; *q && strchr("-+ #0", *q); q++)
        if (!memchr(spec, *q, k)) spec[k++] = *q;
    int width = read_number(w, lane, &q, &next), precision = -1;
    if (*q == '.') q++, precision = read_number(w, lane, &q, &next);
    const char *size = q;
    while (*q && strchr("hlzjt", *q) && q < size + 2) q++;
    const int integer = *q && strchr("diouxX", *q), sized = size != q;
    if (!*q || !strchr("diouxXcspeEfFgGaA", *q) || (sized && !integer && (strchr("csp", *q) || *size != 'l'))) return 0;
    const u32 bytes = *q == 'c' || (integer && (!sized || *size == 'h')) ? 4 : 8;
    next = (next + bytes - 1) & ~(u64)(bytes - 1);
    bits = read_local(w, lane, next, bytes);
    const char c = *q;
    spec[k++] = '*', spec[k++] = '.', spec[k++] = '*';
    if (integer && bytes == 8) spec[k++] = 'l', spec[k++] = 'l';
    if (integer && *size == 'h') spec[k++] = 'h', size[1] == 'h' ? spec[k++] = 'h' : 0;
    spec[k++] = c, spec[k] = 0;
    int made;
    if (c == 's') {
        read_string(w, lane, bits, text, sizeof text);
        made = snprintf(out, room, spec, width, precision, text);
    } else if (c == 'p') {
        made = snprintf(out, room, "%*p", width, (void *)bits);
    } else if (c == 'c') {
        made = snprintf(out, room, strchr(spec, '-') ? "%-*c" : "%*c", width, (int)bits);
    } else if (bytes == 4) {
        made = snprintf(out, room, spec, width, precision, (int)bits);
    } else if (integer) {
        made = snprintf(out, room, spec, width, precision, (long long)bits);
    } else {
        made = snprintf(out, room, spec, width, precision, q2d(bits));
    }
    *p = q + 1, *at = next + bytes;
    return made < 0 ? 0 : (size_t)made < room ? (size_t)made : room - 1;
}

u32 rt_vprintf(struct warp *w, u32 lane, u64 format_address, u64 arguments) {
    char format[4096], line[2 * MOST_WIDE];
    read_string(w, lane, format_address, format, sizeof format);
    size_t n = 0;
    u32 converted = 0;
    u64 at = arguments;
    for (const char *p = format; *p && n < sizeof line - 1;) {
        if (*p != '%' || p[1] == '%') {
            p += *p == '%';
            line[n++] = *p++;
            continue;
        }
        const char *behind = p + 1;
        const u64 before = at;
        n += convert(w, lane, &behind, &at, line + n, sizeof line - n);
        if (at == before) line[n++] = *p++;
        else p = behind, converted++;
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
