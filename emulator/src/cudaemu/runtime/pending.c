/* Copies in a stream that does not wait for a kernel that uses the same memory. The emulator runs work in the order of its
 * submission, so such a copy would never give a wrong result; it is reported instead.
 *
 * A kernel's arguments show what it accesses: a copy conflicts with the kernel if its source or its target begins at an
 * address among them. Programs that order streams by events are not checked. */

#include "emu.h"

#define MOST 64u
struct pending { const struct stream *stream; const char *name; u64 addresses[16]; u32 count; const void *call; };
static struct pending pending[MOST];
static u32 count;
static int has_events;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void pending_kernel(const struct launch *l) {
    struct pending p = {.stream = l->work.stream, .name = l->kernel->name, .call = host_call};
    for (u32 i = 0; i < l->kernel->parameter_count; i++) {
        u64 address;
        if (l->kernel->parameters[i].size != sizeof address) continue;
        memcpy(&address, l->params + l->kernel->parameters[i].offset, sizeof address);
        if (memory_is_arena(address) && p.count < sizeof p.addresses / sizeof *p.addresses) p.addresses[p.count++] = address;
    }
    pthread_mutex_lock(&lock);
    if (p.count && count < MOST) pending[count++] = p;
    pthread_mutex_unlock(&lock);
}

/* Reports a copy in stream `s` that does not wait for a kernel that it conflicts with. */
void pending_copy(const struct stream *s, u64 to, u64 from) {
    struct pending found = {.count = 0};
    u64 address = 0;
    pthread_mutex_lock(&lock);
    for (u32 i = 0; i < count && !has_events && !found.count; i++)
        for (u32 k = 0; k < pending[i].count && !stream_waits(s, pending[i].stream); k++)
            if (pending[i].addresses[k] == to || pending[i].addresses[k] == from) found = pending[i], address = pending[i].addresses[k];
    pthread_mutex_unlock(&lock);
    if (!found.count || !first_time(found.call, (u32)((u64)host_call >> 32), (u32)(u64)host_call)) return;
    char place[400], there[400];
    place_facts("other", &found.call, 1, there, sizeof there);
    allocation_facts(memory_find(address), place, sizeof place);
    finding(NULL, ~0u, 0, "race", "copy_before_kernel", "how:%s\nstream:%s\nlaunched:%s\n%s\n%s", address == to ? "to" : "from", s == &legacy_stream ? "default" : "this", demangle(found.name), there, place);
}

void pending_settle(const struct stream *s) {
    pthread_mutex_lock(&lock);
    for (u32 i = count; i-- > 0;)
        if (!s || stream_waits(s, pending[i].stream)) pending[i] = pending[--count];
    pthread_mutex_unlock(&lock);
    guard_settle(s);
}

void pending_event(void) {
    has_events = 1;
    pending_settle(NULL);
}
