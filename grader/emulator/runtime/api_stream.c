/* Streams and events. Work is done when it is submitted, so streams only number things and events only hold a time. */

#include "emu.h"
#include <stdlib.h>

struct stream { int number; unsigned flags; int priority; };
struct event { u64 time; int recorded; unsigned flags; };
static int streams;

int stream_number(cudaStream_t s) { return (u64)s <= 2 ? 0 : ((struct stream *)s)->number; }

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority) {
    struct stream *s = calloc(1, sizeof *s);
    s->number = __atomic_add_fetch(&streams, 1, __ATOMIC_SEQ_CST), s->flags = flags, s->priority = priority;
    *out = (cudaStream_t)s;
    return API(cudaSuccess);
}
cudaError_t cudaStreamCreate(cudaStream_t *out) { return cudaStreamCreateWithPriority(out, 0, 0); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) { return cudaStreamCreateWithPriority(out, flags, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t s) { (void)s; return API(cudaSuccess); }
cudaError_t cudaStreamSynchronize(cudaStream_t s) { (void)s; return API(surface_fault()); }
cudaError_t cudaStreamQuery(cudaStream_t s) { (void)s; return API(surface_fault()); }
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags) { (void)s, (void)e, (void)flags; return API(cudaSuccess); }
cudaError_t cudaStreamGetFlags(cudaStream_t s, unsigned *flags) { *flags = (u64)s <= 2 ? 0 : ((struct stream *)s)->flags; return API(cudaSuccess); }
cudaError_t cudaStreamGetPriority(cudaStream_t s, int *priority) { *priority = (u64)s <= 2 ? 0 : ((struct stream *)s)->priority; return API(cudaSuccess); }
cudaError_t cudaStreamAttachMemAsync(cudaStream_t s, void *p, size_t n, unsigned flags) { (void)s, (void)p, (void)n, (void)flags; return API(cudaSuccess); }
cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t f, void *data, unsigned flags) {
    (void)flags;
    f(s, (cudaError_t)(sticky_error ? sticky_error : pending_fault), data);
    return API(cudaSuccess);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void *data) { (void)s; f(data); return API(cudaSuccess); }
cudaError_t cudaCtxResetPersistingL2Cache(void) { return API(cudaSuccess); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
    struct event *e = calloc(1, sizeof *e);
    e->flags = flags;
    *out = (cudaEvent_t)e;
    return API(cudaSuccess);
}
cudaError_t cudaEventCreate(cudaEvent_t *out) { return cudaEventCreateWithFlags(out, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t e) { free(e); return API(cudaSuccess); }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
    (void)s;
    if (!e) return API(cudaErrorInvalidResourceHandle);
    ((struct event *)e)->time = now_ns();
    ((struct event *)e)->recorded = 1;
    return API(cudaSuccess);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned flags) { (void)flags; return cudaEventRecord(e, s); }
cudaError_t cudaEventSynchronize(cudaEvent_t e) { (void)e; return API(surface_fault()); }
cudaError_t cudaEventQuery(cudaEvent_t e) { (void)e; return API(surface_fault()); }
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b) {
    struct event *x = (struct event *)a, *y = (struct event *)b;
    if (!x || !y || !x->recorded || !y->recorded || ((x->flags | y->flags) & cudaEventDisableTiming)) return API(cudaErrorInvalidResourceHandle);
    if (surface_fault()) return API(sticky_error);
    *ms = (float)((double)(y->time - x->time) * 1e-6);
    return API(cudaSuccess);
}
