/* The table of allocations.
 *
 * Device memory is one large anonymous file (memfd), mapped twice. Device addresses point into the first mapping, which
 * allows no access. Kernels and copies add a constant and so use the second one, which is readable and writable.
 * Therefore host code that dereferences a device pointer faults, and process.c can name the allocation. Managed, pinned
 * and registered memory is ordinary host memory; its device address is its host address.
 *
 * Freed address ranges are never reused, so a use after free finds a freed allocation. Their pages go back to the
 * system, and new memory is zero. Between allocations there are at least 256 unused bytes. */

#define _GNU_SOURCE
#include "emu.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_ARENA_BYTES (1ull << 40)
#define GAP 256ull

static u8 *arena, *arena_alias;
static int arena_file = -1;
static u64 arena_bytes, arena_next = 1 << 20, used, serial;
static struct allocation **table; /* sorted by start; freed ones stay */
static u64 count, capacity;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *map(u64 bytes, int access) {
    void *p = mmap(NULL, bytes, access, MAP_SHARED | MAP_NORESERVE, arena_file, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Reserves as much address space as it can get, because ulimit -v may allow only little. */
static void start(void) {
    arena_file = memfd_create("device memory", MFD_CLOEXEC);
    for (u64 bytes = MOST_ARENA_BYTES; arena_file >= 0 && bytes >= 1ull << 32; bytes /= 2) {
        arena = ftruncate(arena_file, (off_t)bytes) ? NULL : map(bytes, PROT_NONE);
        arena_alias = arena ? map(bytes, PROT_READ | PROT_WRITE) : NULL;
        arena_bytes = bytes;
        if (arena_alias) return;
        if (arena) munmap(arena, bytes);
    }
    fprintf(stderr, "emulator: cannot reserve device memory: %s\n", strerror(errno));
    _exit(125);
}
void memory_start(void) { pthread_once(&once, start); }

int memory_is_arena(u64 a) { return arena && a >= (u64)arena && a < (u64)arena + arena_bytes; }

/* Index of the last allocation that starts at or before the address; -1 when none. */
static i64 position(u64 address) {
    i64 lo = 0, hi = (i64)count - 1, at = -1;
    while (lo <= hi) {
        i64 mid = (lo + hi) / 2;
        if (table[mid]->start <= address) at = mid, lo = mid + 1;
        else hi = mid - 1;
    }
    return at;
}

/* Under --sanitize init, a bit for each byte of device memory (written.c). */
static void watch_start(struct allocation *a) {
    if (!is_watching || !(a->kind == MEMORY_DEVICE || a->kind == MEMORY_HEAP)) return;
    void *p = mmap(NULL, a->size / 8 + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED) a->written = p;
}

static void watch_end(struct allocation *a) {
    if (a->written) munmap(a->written, a->size / 8 + 1);
    if (a->cells) munmap(a->cells, a->cells_bytes);
    a->written = NULL, a->cells = NULL;
}

static struct allocation *insert(u64 address, u64 bytes, i64 delta, enum memory_kind kind, const char *label) {
    MAKE_ROOM(table, count, capacity);
    struct allocation *a = calloc(1, sizeof *a);
    *a = (struct allocation){.start = address, .size = bytes, .delta = delta, .kind = kind, .serial = ++serial, .made_at = kind == MEMORY_VARIABLE || kind == MEMORY_HEAP ? NULL : host_call};
    snprintf(a->label, sizeof a->label, "%s", label);
    i64 at = position(address) + 1;
    memmove(table + at + 1, table + at, (size_t)((i64)count - at) * sizeof *table);
    table[at] = a;
    count++;
    watch_start(a);
    return a;
}

struct allocation *memory_allocate(u64 bytes, u64 align, enum memory_kind kind, const char *label) {
    memory_start();
    if (bytes > DEVICE_MEMORY_BYTES) return NULL;
    pthread_mutex_lock(&lock);
    struct allocation *result = NULL;
    if (kind == MEMORY_MANAGED || kind == MEMORY_PINNED) {
        u64 whole = (bytes + 4095 + 4096) & ~4095ull;
        void *p = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p != MAP_FAILED) result = insert((u64)p, bytes, 0, kind, label);
    } else if (used + bytes <= DEVICE_MEMORY_BYTES) {
        if (align < 512) align = 512;
        u64 at = (arena_next + align - 1) & ~(align - 1);
        if (at + bytes + GAP <= arena_bytes) {
            arena_next = at + bytes + GAP;
            /* The arena is page-aligned, so this address is aligned too. */
            result = insert((u64)arena + at, bytes, (i64)((u64)arena_alias - (u64)arena), kind, label);
            used += bytes;
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

void memory_adopt(void *host, u64 bytes, enum memory_kind kind, const char *label) {
    memory_start();
    pthread_mutex_lock(&lock);
    insert((u64)host, bytes, 0, kind, label);
    pthread_mutex_unlock(&lock);
}

struct allocation *memory_find(u64 address) {
    pthread_mutex_lock(&lock);
    struct allocation *found = NULL;
    for (i64 at = position(address); at >= 0; at--) { /* a live host range may overlap freed ones */
        struct allocation *a = table[at];
        if (!a->freed && address - a->start < (a->size ? a->size : 1)) {
            found = a;
            break;
        }
        if (!a->freed || position(address) - at > 8) break;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

struct allocation *memory_nearest(u64 address) {
    pthread_mutex_lock(&lock);
    struct allocation *best = NULL;
    u64 distance = ~0ull;
    i64 at = position(address);
    for (i64 k = at - 3 < 0 ? 0 : at - 3; k <= at + 3 && k < (i64)count; k++) {
        struct allocation *a = table[k];
        u64 d = address < a->start ? a->start - address : address >= a->start + a->size ? address - (a->start + a->size) + 1 : 0;
        if (d < distance || (d == distance && best && best->freed)) best = a, distance = d;
    }
    pthread_mutex_unlock(&lock);
    return best;
}

/* The caller holds the lock. */
static void release(struct allocation *a) {
    a->freed = 1;
    watch_end(a);
    if (a->kind == MEMORY_REGISTERED) {
        /* the program's own memory */
    } else if (a->delta) {
        used -= a->size;
        u64 from = (a->start - (u64)arena + 4095) & ~4095ull, to = (a->start - (u64)arena + a->size) & ~4095ull;
        if (to > from) fallocate(arena_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from));
    } else {
        u64 whole = (a->size + 4095 + 4096) & ~4095ull;
        mmap((void *)a->start, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    }
}

int memory_free(u64 address, enum memory_kind kind, const char *function) {
    if (address == 0) return cudaSuccess;
    pthread_mutex_lock(&lock);
    i64 at = position(address);
    struct allocation *a = NULL;
    for (; at >= 0 && table[at]->start == address; at--)
        if (!table[at]->freed || !a) a = table[at];
    int bad = !a || a->start != address || a->freed;
    int mismatch = !bad && !(a->kind == kind || (kind == MEMORY_DEVICE && a->kind == MEMORY_MANAGED));
    if (bad || mismatch) {
        const char *what = !a ? "no_allocation" : a->freed ? "freed" : "other_function";
        char label[64] = "";
        if (a) snprintf(label, sizeof label, "%s", a->label);
        pthread_mutex_unlock(&lock);
        finding(NULL, ~0u, 0, "api", "bad_free", "function:%s\nhow:%s\nby:%s", function, what, label);
        return cudaErrorInvalidValue;
    }
    release(a);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

void memory_again(u64 address) {
    pthread_mutex_lock(&lock);
    const i64 at = position(address);
    struct allocation *a = at >= 0 ? table[at] : NULL;
    if (a && a->start == address && a->freed && a->kind == MEMORY_DEVICE) a->freed = 0, used += a->size, watch_start(a);
    pthread_mutex_unlock(&lock);
}

void memory_reset(void) {
    memory_report_leaks();
    pthread_mutex_lock(&lock);
    for (u64 i = 0; i < count; i++)
        if (!table[i]->freed && table[i]->kind != MEMORY_VARIABLE && table[i]->kind != MEMORY_REGISTERED) release(table[i]);
    pthread_mutex_unlock(&lock);
}

void *memory_host(u64 address) {
    return memory_is_arena(address) ? (void *)(address - (u64)arena + (u64)arena_alias) : (void *)address;
}

u64 memory_used(void) { return used; }

void allocation_facts(const struct allocation *a, char *text, size_t size) {
    const char *space = strrchr(a->label, ' ');
    char place[400];
    int n = snprintf(text, size, "size=%llu\nby:%s\n", (unsigned long long)a->size, a->label);
    if (n < 0 || (size_t)n >= size) return;
    text += n, size -= (size_t)n;
    if (a->kind == MEMORY_VARIABLE) snprintf(text, size, "of:variable\narray:%s", space ? space + 1 : a->label);
    else snprintf(text, size, "of:allocation\nserial=%llu\n%s", (unsigned long long)a->serial, place_facts("allocated", &a->made_at, 1, place, sizeof place));
}

/* If GRADER_EMULATOR_LEAKS is set, reports allocations that were never freed, as notes: the system frees them anyway. */
void memory_report_leaks(void) {
    if (!getenv("GRADER_EMULATOR_LEAKS") || sticky_error || pending_fault) return; /* after a fault cudaFree fails too */
    for (u64 i = 0; i < count; i++) {
        const struct allocation *a = table[i];
        if (a->freed || a->kind == MEMORY_VARIABLE || a->kind == MEMORY_REGISTERED) continue;
        char facts[400];
        allocation_facts(a, facts, sizeof facts);
        host_call = a->made_at;
        finding(NULL, ~0u, 0, "memory", "leak", "%s", facts);
    }
}

void memory_place(const struct allocation *a, u64 address, char *text, size_t size) {
    int n = snprintf(text, size, "offset=%llu\n", (unsigned long long)(address - a->start));
    if (n > 0 && (size_t)n < size) allocation_facts(a, text + n, size - (size_t)n);
}

/* "kernel(int*)::tile" → "tile" */
static const char *last_name(const char *name) {
    const char *text = demangle(name), *last = text;
    for (const char *p = text; (p = strstr(p, "::")) != NULL; p += 2) last = p + 2;
    return last;
}

static const struct shared_info *shared_at(const struct kernel_info *k, u32 offset, u32 shared_size) {
    const struct shared_info *found = NULL;
    for (u32 i = 0; i < k->shared_count; i++)
        if (k->shared[i].offset <= offset && (k->shared[i].size || k->shared[i].offset < shared_size) && (!found || k->shared[i].offset >= found->offset)) found = &k->shared[i];
    return found;
}

u32 shared_extent(const struct kernel_info *k, u32 offset, u32 shared_size, u32 *start) {
    const struct shared_info *found = shared_at(k, offset, shared_size);
    *start = found ? found->offset : offset;
    return !found ? 0 : found->size ? found->size : shared_size - found->offset;
}

int shared_is_dynamic(const struct kernel_info *k, u32 offset, u32 shared_size) {
    const struct shared_info *found = shared_at(k, offset, shared_size);
    return found && !found->size;
}

const char *shared_variable(const struct kernel_info *k, u32 offset, u32 shared_size) {
    const struct shared_info *found = shared_at(k, offset, shared_size);
    return found ? last_name(found->name) : "";
}

void shared_place(const struct kernel_info *k, u32 offset, u32 shared_size, char *text, size_t size) {
    const struct shared_info *found = shared_at(k, offset, shared_size);
    if (!found) {
        snprintf(text, size, "of:block\noffset=%u\nrelation:inside", offset);
        return;
    }
    u32 bytes = found->size ? found->size : shared_size - found->offset, at = offset - found->offset;
    int n = snprintf(text, size, "of:%s\narray:%s\nsize=%u\n", found->size ? "shared" : "dynamic", last_name(found->name), bytes);
    if (n < 0 || (size_t)n >= size) return;
    if (at < bytes) snprintf(text + n, size - (size_t)n, "offset=%u\nrelation:inside", at);
    else snprintf(text + n, size - (size_t)n, at > bytes ? "relation:past\npast=%u" : "relation:just_past", at - bytes);
}

/* The address is left out: it differs from run to run and tells a reader nothing. */
const char *memory_facts(u64 address, char *text, size_t size) {
    struct allocation *a = memory_nearest(address);
    u64 far = 1ull << 20;
    if (!a || (address + far < a->start) || (address > a->start + a->size + far && !memory_is_arena(address))) {
        snprintf(text, size, "relation:%s", address >= 4096 ? "nowhere" : address ? "null_offset" : "null");
        return address < 4096 ? "null_pointer" : "no_allocation";
    }
    const u64 end = a->start + a->size;
    const char *kind = a->freed ? "use_after_free" : address < a->start ? "before_start" : address >= end ? "past_the_end" : "outside";
    int n = snprintf(text, size, "%s", a->freed ? "freed:freed\n" : "");
    n += address < a->start ? snprintf(text + n, size - (size_t)n, "relation:before\nbefore=%llu\n", (unsigned long long)(a->start - address))
         : address == end   ? snprintf(text + n, size - (size_t)n, "relation:just_past\n")
         : address > end    ? snprintf(text + n, size - (size_t)n, "relation:past\npast=%llu\n", (unsigned long long)(address - end))
                            : snprintf(text + n, size - (size_t)n, "relation:inside\noffset=%llu\n", (unsigned long long)(address - a->start));
    allocation_facts(a, text + n, size - (size_t)n);
    return kind;
}
