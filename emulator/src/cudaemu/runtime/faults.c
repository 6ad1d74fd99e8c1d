/* Faults: the first one stops its launch and is reported, with advice. In a watched program an access to a bad address
 * has no effect, and the launch goes on to its end, so that its races are found too; except one by an asynchronous
 * operation. */

#include "emu.h"

static void fault(struct warp *w, u32 site, u32 lane, int code, int stops, const char *kind, const char *facts) {
    struct launch *l = w->block->launch;
    static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&first);
    if (!l->error && !l->abort) {
        l->error = code;
        finding(w, site, lane, code == cudaErrorLaunchTimeout ? "sync" : "memory", kind, "%s", facts);
    }
    if (stops) l->abort = 1;
    pthread_mutex_unlock(&first);
}

#define FORMATTED(text)                                                                                                \
    char text[1024];                                                                                                   \
    va_list list;                                                                                                      \
    va_start(list, facts);                                                                                            \
    vsnprintf(text, sizeof text, facts, list);                                                                        \
    va_end(list)

void rt_fault(struct warp *w, u32 site, u32 lane, int code, const char *kind, const char *facts, ...) {
    FORMATTED(text);
    fault(w, site, lane, code, 1, kind, text);
    leave_warp(w, WARP_DEAD);
}

void report_fault(struct warp *w, u32 site, u32 lane, int code, const char *kind, const char *facts, ...) {
    FORMATTED(text);
    fault(w, site, lane, code, 1, kind, text);
}

void *bad_access(struct warp *w, u32 site, u32 lane, int goes_on, int code, const char *kind, const char *facts, ...) {
    static u8 nothing[4096] __attribute__((aligned(64))); /* the words of a lane's local memory are 128 bytes apart */
    FORMATTED(text);
    fault(w, site, lane, code, !goes_on, kind, text);
    if (!goes_on) leave_warp(w, WARP_DEAD);
    memset(nothing, 0, sizeof nothing);
    return nothing + sizeof nothing / 2;
}
