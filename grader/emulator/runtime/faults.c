/* Faults: the first one stops its launch and is reported, with advice. In a watched program an access to a bad address
 * has no effect, and the launch goes on to its end, so that its races are found too; except one by an asynchronous
 * operation. */

#include "emu.h"

static void fault(struct warp *w, u32 site, u32 lane, int code, int stops, const char *text) {
    struct launch *l = w->block->launch;
    static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&first);
    if (!l->error && !l->abort) {
        int is_first = !w->block->index && !w->index && !lane;
        const char *advice = strstr(text, " past the end of the dynamic ") ? "Ask for more in the launch (the third parameter in <<<…>>>), or correct the index."
                             : code == cudaErrorIllegalAddress   ? is_first ? "Check the index against the size of the array." : "Check the index against the size of the array, for the last block and the last thread too."
                             : code == cudaErrorMisalignedAddress ? "Vector types such as float4 need addresses that are multiples of their size."
                             : code == cudaErrorLaunchTimeout     ? "Check the loop's condition, and whether it waits for a thread or block that cannot run."
                             : code == cudaErrorIllegalInstruction && l->module->info->sites[site].kind != SITE_CALL
                                 ? "Check how the barrier is set up: by one thread, before any other uses it, and for the number of threads that arrive at it."
                                 : "";
        l->error = code;
        diagnose(w, site, lane, "error", code == cudaErrorLaunchTimeout ? "sync" : "memory", advice, "%s", text);
    }
    if (stops) l->abort = 1;
    pthread_mutex_unlock(&first);
}

#define FORMATTED(text)                                                                                                \
    char text[1024];                                                                                                   \
    va_list list;                                                                                                      \
    va_start(list, format);                                                                                            \
    vsnprintf(text, sizeof text, format, list);                                                                        \
    va_end(list)

void rt_fault(struct warp *w, u32 site, u32 lane, int code, const char *format, ...) {
    FORMATTED(text);
    fault(w, site, lane, code, 1, text);
    leave_warp(w, WARP_DEAD);
}

void diagnose_fault(struct warp *w, u32 site, u32 lane, int code, const char *format, ...) {
    FORMATTED(text);
    fault(w, site, lane, code, 1, text);
}

void *bad_access(struct warp *w, u32 site, u32 lane, int goes_on, int code, const char *format, ...) {
    static u8 nothing[4096] __attribute__((aligned(64))); /* the words of a lane's local memory are 128 bytes apart */
    FORMATTED(text);
    fault(w, site, lane, code, !goes_on, text);
    if (!goes_on) leave_warp(w, WARP_DEAD);
    memset(nothing, 0, sizeof nothing);
    return nothing + sizeof nothing / 2;
}
