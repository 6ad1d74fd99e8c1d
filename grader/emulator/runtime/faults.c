/* Faults: the first one stops its launch and is reported, with advice. */

#include "emu.h"

static void fault(struct warp *w, u32 site, u32 lane, int code, const char *text) {
    struct launch *l = w->block->launch;
    static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&first);
    if (!l->abort) {
        int is_first = !w->block->index && !w->index && !lane;
        const char *advice = strstr(text, " past the end of the dynamic ") ? "Ask for more in the launch (the third parameter in <<<…>>>), or correct the index."
                             : code == cudaErrorIllegalAddress   ? is_first ? "Check the index against the size of the array." : "Check the index against the size of the array, for the last block and the last thread too."
                             : code == cudaErrorMisalignedAddress ? "Vector types such as float4 need addresses that are multiples of their size."
                             : code == cudaErrorLaunchTimeout     ? "Check the loop's condition, and whether it waits for a thread or block that cannot run."
                             : code == cudaErrorIllegalInstruction && l->module->info->sites[site].kind != SITE_CALL
                                 ? "Check how the barrier is set up: by one thread, before any other uses it, and for the number of threads that arrive at it."
                                 : "";
        l->error = code;
        l->abort = 1;
        diagnose(w, site, lane, "error", code == cudaErrorLaunchTimeout ? "sync" : "memory", advice, "%s", text);
    }
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
    fault(w, site, lane, code, text);
    leave_warp(w, WARP_DEAD);
}

void diagnose_fault(struct warp *w, u32 site, u32 lane, int code, const char *format, ...) {
    FORMATTED(text);
    fault(w, site, lane, code, text);
}
