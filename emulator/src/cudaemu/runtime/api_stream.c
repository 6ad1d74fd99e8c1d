/* Streams, events, and host functions in streams. */

#include "emu.h"
#include <stdlib.h>

struct event {
    u64 time, id; /* id: of the record's work; 0 if it was done at the call */
    int recorded;
    unsigned flags;
    struct graph *graph; /* if recorded in a stream that is capturing: the nodes that the event stands for */
    struct node **nodes;
    u32 node_count;
};

static struct stream *new_stream(unsigned flags, int priority) {
    static int streams;
    struct stream *s = calloc(1, sizeof *s);
    s->number = __atomic_add_fetch(&streams, 1, __ATOMIC_SEQ_CST), s->flags = flags, s->priority = priority;
    return s;
}

struct stream *stream_of(cudaStream_t handle) {
    static __thread struct stream *own;
    if (handle == cudaStreamLegacy || (!handle && !default_stream_per_thread)) return &legacy_stream;
    if (handle && handle != cudaStreamPerThread) return (struct stream *)handle;
    return own ? own : (own = new_stream(0, 0));
}
int stream_number(cudaStream_t s) { return stream_of(s)->number; }

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority) {
    if (!out || flags > cudaStreamNonBlocking) return API(cudaErrorInvalidValue);
    *out = (cudaStream_t)new_stream(flags, priority < -5 ? -5 : priority > 0 ? 0 : priority);
    return API(cudaSuccess);
}
cudaError_t cudaStreamCreate(cudaStream_t *out) { return cudaStreamCreateWithPriority(out, 0, 0); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) { return cudaStreamCreateWithPriority(out, flags, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t s) { return API((u64)s <= 2 ? cudaErrorInvalidResourceHandle : cudaSuccess); } /* not freed: the stream may still have work */
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
    if (captured_graph(stream_of(s))) return API(cudaErrorStreamCaptureUnsupported);
    work_wait(stream_of(s), 0);
    return API(surface_fault());
}
cudaError_t cudaStreamQuery(cudaStream_t s) {
    if (captured_graph(stream_of(s))) return API(cudaErrorStreamCaptureUnsupported);
    pending_settle(stream_of(s));
    if (!surface_fault() && !work_is_done(stream_of(s), 0)) return API(cudaErrorNotReady);
    return API(surface_fault());
}
cudaError_t cudaStreamGetFlags(cudaStream_t s, unsigned *flags) { *flags = stream_of(s)->flags; return API(cudaSuccess); }
cudaError_t cudaStreamGetPriority(cudaStream_t s, int *priority) { *priority = stream_of(s)->priority; return API(cudaSuccess); }
cudaError_t cudaStreamGetId(cudaStream_t s, unsigned long long *id) { *id = (u64)stream_of(s)->number; return API(cudaSuccess); }
cudaError_t cudaStreamGetDevice(cudaStream_t s, int *device) { (void)s; *device = 0; return API(cudaSuccess); }
cudaError_t cudaStreamAttachMemAsync(cudaStream_t s, void *p, size_t n, unsigned flags) { (void)s, (void)p, (void)n, (void)flags; return API(cudaSuccess); }
cudaError_t cudaStreamSetAttribute(cudaStream_t s, cudaStreamAttrID id, const cudaStreamAttrValue *value) {
    if ((unsigned)id >= 20) return API(cudaErrorInvalidValue);
    memcpy(stream_of(s)->attributes[id], value, sizeof *value);
    if (id == cudaLaunchAttributePriority) stream_of(s)->priority = value->priority;
    return API(cudaSuccess);
}
cudaError_t cudaStreamGetAttribute(cudaStream_t s, cudaStreamAttrID id, cudaStreamAttrValue *value) {
    if ((unsigned)id >= 20) return API(cudaErrorInvalidValue);
    memcpy(value, stream_of(s)->attributes[id], sizeof *value);
    if (id == cudaLaunchAttributePriority) value->priority = stream_of(s)->priority;
    return API(cudaSuccess);
}
cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
    memcpy(stream_of(to)->attributes, stream_of(from)->attributes, sizeof stream_of(to)->attributes);
    return API(cudaSuccess);
}
cudaError_t cudaCtxResetPersistingL2Cache(void) { return API(cudaSuccess); }

/* ---- host functions ------------------------------------------------------------------------------------------------------- */

struct host_work { struct work work; cudaHostFn_t function; cudaStreamCallback_t callback; cudaStream_t stream; void *data; };

static int run_host_function(struct work *work) {
    struct host_work *h = (struct host_work *)work;
    if (h->callback) h->callback(h->stream, (cudaError_t)(sticky_error ? sticky_error : pending_fault), h->data);
    else if (!MUST_NOT_RUN) h->function(h->data);
    return 1;
}
cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t f, void *data, unsigned flags) {
    if (flags || !f) return API(cudaErrorInvalidValue);
    if (captured_graph(stream_of(s))) return API(cudaErrorStreamCaptureUnsupported);
    pending_settle(NULL);
    struct host_work h = {.work = {.stream = stream_of(s), .run = run_host_function}, .callback = f, .stream = s, .data = data};
    work_submit(&h.work, sizeof h);
    return API(cudaSuccess);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void *data) {
    if (!f) return API(cudaErrorInvalidValue);
    pending_settle(NULL); /* the function may use what was copied before */
    int captured = capture_host(s, f, data);
    if (captured >= 0) return API(captured);
    struct host_work h = {.work = {.stream = stream_of(s), .run = run_host_function}, .function = f, .data = data};
    work_submit(&h.work, sizeof h);
    return API(cudaSuccess);
}

/* ---- events ------------------------------------------------------------------------------------------------------------- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
    struct event *e = calloc(1, sizeof *e);
    e->flags = flags;
    *out = (cudaEvent_t)e;
    return API(cudaSuccess);
}
cudaError_t cudaEventCreate(cudaEvent_t *out) { return cudaEventCreateWithFlags(out, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t e) { return API(e ? cudaSuccess : cudaErrorInvalidResourceHandle); } /* not freed: a record may still be pending */

struct event_work { struct work work; struct event *event; };
static int run_record(struct work *work) {
    ((struct event_work *)work)->event->time = now_ns();
    return 1;
}
static int run_wait(struct work *work) { (void)work; return 1; }

cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t s, unsigned flags) {
    struct event *e = (struct event *)handle;
    if (!e) return API(cudaErrorInvalidResourceHandle);
    if (flags & cudaEventRecordExternal && captured_graph(stream_of(s))) return API(capture_event(s, handle, cudaGraphNodeTypeEventRecord));
    if (capture_record(s, &e->graph, &e->nodes, &e->node_count) >= 0) return API(cudaSuccess);
    struct event_work w = {.work = {.stream = stream_of(s), .run = run_record}, .event = e};
    e->recorded = 1, e->graph = NULL;
    e->id = work_submit(&w.work, sizeof w);
    return API(cudaSuccess);
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) { return cudaEventRecordWithFlags(e, s, 0); }
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t handle, unsigned flags) {
    struct event *e = (struct event *)handle;
    if (!e) return API(cudaErrorInvalidResourceHandle);
    if (flags & cudaEventWaitExternal && captured_graph(stream_of(s))) return API(capture_event(s, handle, cudaGraphNodeTypeWaitEvent));
    pending_event();
    if (e->graph) return API(capture_wait(s, e->graph, e->nodes, e->node_count));
    if (!e->id || work_is_done(NULL, e->id)) return API(cudaSuccess);
    struct event_work w = {.work = {.stream = stream_of(s), .run = run_wait, .after = e->id}};
    work_submit(&w.work, sizeof w);
    return API(cudaSuccess);
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
    if (!e) return API(cudaErrorInvalidResourceHandle);
    pending_event();
    if (((struct event *)e)->id) work_wait(NULL, ((struct event *)e)->id);
    return API(surface_fault());
}
cudaError_t cudaEventQuery(cudaEvent_t e) {
    if (!e) return API(cudaErrorInvalidResourceHandle);
    pending_event();
    if (!surface_fault() && ((struct event *)e)->id && !work_is_done(NULL, ((struct event *)e)->id)) return API(cudaErrorNotReady);
    return API(surface_fault());
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b) {
    struct event *x = (struct event *)a, *y = (struct event *)b;
    if (!x || !y || !x->recorded || !y->recorded || ((x->flags | y->flags) & cudaEventDisableTiming)) return API(cudaErrorInvalidResourceHandle);
    if (surface_fault()) return API(sticky_error);
    if ((x->id && !work_is_done(NULL, x->id)) || (y->id && !work_is_done(NULL, y->id))) return API(cudaErrorNotReady);
    *ms = (float)((double)(i64)(y->time - x->time) * 1e-6);
    return API(cudaSuccess);
}
