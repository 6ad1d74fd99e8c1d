/* Stream capture: work submitted to a capturing stream becomes a graph node that waits for the stream's last nodes
 * (`tails`). A stream that waits for an event of a capturing stream joins the capture. */

#include "graph.h"
#include <stdlib.h>

static struct stream *origin_of_capture; /* the stream in which the capture began and must end */

static int made_for_capture; /* cudaStreamBeginCapture created the graph */

/* The graph that the stream captures into, or NULL. A stream that joined a capture leaves when the capture ends. */
struct graph *captured_graph(struct stream *s) {
    if (s->captures && (!origin_of_capture || s->captures != origin_of_capture->captures)) s->captures = NULL;
    return s->captures;
}

static void set_tails(struct stream *s, struct node *const *nodes, u32 count) {
    struct node **kept = malloc((count + 1) * sizeof *kept);
    if (count) memcpy(kept, nodes, count * sizeof *kept);
    free(s->tails);
    s->tails = kept, s->tail_count = count;
}

static struct node *captured(cudaStream_t stream, enum cudaGraphNodeType type) {
    struct stream *s = stream_of(stream);
    if (!captured_graph(s)) return NULL;
    struct node *n = graph_add(s->captures, type, s->tails, s->tail_count);
    set_tails(s, &n, 1);
    return n;
}

int capture_launch(cudaStream_t stream, const void *host, dim3 grid, dim3 block, void **args, size_t shared) {
    struct node *n = captured(stream, cudaGraphNodeTypeKernel);
    if (!n) return -1;
    node_set_kernel(n, &(struct cudaKernelNodeParams){(void *)host, grid, block, (u32)shared, args, NULL});
    return cudaSuccess;
}
int capture_move(cudaStream_t stream, const struct move *m) {
    struct node *n = captured(stream, cudaGraphNodeTypeMemcpy);
    if (!n) return -1;
    n->copy.move = *m;
    return cudaSuccess;
}
int capture_set(cudaStream_t stream, void *to, u64 pitch, u32 value, u32 element, u64 width, u64 rows) {
    struct node *n = captured(stream, cudaGraphNodeTypeMemset);
    if (!n) return -1;
    n->set = (struct cudaMemsetParamsV2){to, pitch, value, element, width, rows};
    return cudaSuccess;
}
int capture_host(cudaStream_t stream, cudaHostFn_t f, void *data) {
    struct node *n = captured(stream, cudaGraphNodeTypeHost);
    if (!n) return -1;
    n->function = (struct cudaHostNodeParams){f, data};
    return cudaSuccess;
}
int capture_event(cudaStream_t stream, cudaEvent_t event, enum cudaGraphNodeType type) {
    struct node *n = captured(stream, type);
    if (!n) return -1;
    n->event = event;
    return cudaSuccess;
}
int capture_alloc(cudaStream_t stream, void *p, int is_free) {
    struct node *n = captured(stream, is_free ? cudaGraphNodeTypeMemFree : cudaGraphNodeTypeMemAlloc);
    if (!n) return -1;
    n->memory.p = p;
    return cudaSuccess;
}
int capture_record(cudaStream_t stream, struct graph **graph, struct node ***nodes, u32 *count) {
    struct stream *s = stream_of(stream);
    if (!captured_graph(s)) return -1;
    *graph = s->captures, *count = s->tail_count;
    *nodes = malloc((s->tail_count + 1) * sizeof **nodes);
    memcpy(*nodes, s->tails, s->tail_count * sizeof **nodes);
    return cudaSuccess;
}
int capture_wait(cudaStream_t stream, struct graph *graph, struct node **nodes, u32 count) {
    struct stream *s = stream_of(stream);
    if (!origin_of_capture || origin_of_capture->captures != graph) return cudaErrorStreamCaptureIsolation; /* the event was recorded in a capture that has ended */
    if (s == &legacy_stream) return cudaErrorStreamCaptureImplicit;
    struct node **both = malloc((s->tail_count + count + 1) * sizeof *both);
    u32 n = 0;
    if (captured_graph(s) == graph)
        for (u32 i = 0; i < s->tail_count; i++) both[n++] = s->tails[i];
    for (u32 i = 0; i < count; i++) {
        u32 k = 0;
        while (k < n && both[k] != nodes[i]) k++;
        if (k == n) both[n++] = nodes[i];
    }
    s->captures = graph;
    set_tails(s, both, n);
    free(both);
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t g, const cudaGraphNode_t *before, const cudaGraphEdgeData *data, size_t n, enum cudaStreamCaptureMode mode) {
    (void)data;
    struct stream *s = stream_of(stream);
    if ((unsigned)mode > cudaStreamCaptureModeRelaxed) return API(cudaErrorInvalidValue);
    if (s == &legacy_stream) return API(cudaErrorStreamCaptureUnsupported);
    if (origin_of_capture) return API(cudaErrorIllegalState);
    s->captures = (struct graph *)g;
    set_tails(s, (struct node *const *)before, (u32)n);
    origin_of_capture = s;
    made_for_capture = 0;
    return API(cudaSuccess);
}
cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode) {
    cudaError_t e = cudaStreamBeginCaptureToGraph(s, (cudaGraph_t)graph_create(), NULL, NULL, 0, mode);
    made_for_capture = e == cudaSuccess;
    return e;
}

/* Whether the stream waits, directly or not, for all nodes of its graph. */
static int is_joined(const struct stream *s) {
    const struct graph *g = s->captures;
    for (u32 i = 0; i < g->count; i++) {
        int waited_for = 0;
        for (u32 k = 0; k < g->count && !waited_for; k++)
            for (u32 b = 0; b < g->nodes[k]->before_count; b++) waited_for |= g->nodes[k]->before[b] == g->nodes[i];
        for (u32 k = 0; k < s->tail_count; k++) waited_for |= s->tails[k] == g->nodes[i];
        if (!waited_for) return 0;
    }
    return 1;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out) {
    struct stream *s = stream_of(stream);
    if (!captured_graph(s)) return API(cudaErrorIllegalState);
    if (s != origin_of_capture) return API(cudaErrorStreamCaptureUnmatched);
    int whole = !made_for_capture || is_joined(s);
    *out = whole ? (cudaGraph_t)s->captures : NULL;
    s->captures = NULL;
    origin_of_capture = NULL;
    return API(whole ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *status) {
    *status = captured_graph(stream_of(s)) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return API(cudaSuccess);
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **nodes,
                                     const cudaGraphEdgeData **data, size_t *count) {
    struct stream *s = stream_of(stream);
    *status = captured_graph(s) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    if (!captured_graph(s)) return API(cudaSuccess);
    if (id) *id = s->captures->number;
    if (graph) *graph = (cudaGraph_t)s->captures;
    if (nodes) *nodes = (const cudaGraphNode_t *)s->tails;
    if (data) *data = NULL;
    if (count) *count = s->tail_count;
    return API(cudaSuccess);
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes, const cudaGraphEdgeData *data, size_t count, unsigned flags) {
    (void)data;
    struct stream *s = stream_of(stream);
    if (!captured_graph(s)) return API(cudaErrorIllegalState);
    if (flags == cudaStreamSetCaptureDependencies) {
        set_tails(s, (struct node *const *)nodes, (u32)count);
        return API(cudaSuccess);
    }
    return API(capture_wait(stream, s->captures, (struct node **)nodes, (u32)count));
}
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
    static __thread enum cudaStreamCaptureMode mine = cudaStreamCaptureModeGlobal;
    enum cudaStreamCaptureMode before = mine;
    mine = *mode, *mode = before;
    return API(cudaSuccess);
}
