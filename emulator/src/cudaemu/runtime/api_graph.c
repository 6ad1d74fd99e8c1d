/* Graphs built node by node. See graph.h; api_capture.c builds them from streams, api_exec.c runs them. */

#include "graph.h"
#include <stdlib.h>

struct graph *graph_create(void) {
    static u32 graphs;
    struct graph *g = calloc(1, sizeof *g);
    g->number = __atomic_add_fetch(&graphs, 1, __ATOMIC_SEQ_CST);
    return g;
}

static void add_before(struct node *n, struct node *earlier) {
    for (u32 i = 0; i < n->before_count; i++)
        if (n->before[i] == earlier) return;
    n->before = realloc(n->before, (n->before_count + 1) * sizeof *n->before);
    n->before[n->before_count++] = earlier;
}

struct node *graph_add(struct graph *g, enum cudaGraphNodeType type, struct node *const *before, size_t count) {
    struct node *n = calloc(1, sizeof *n);
    n->type = type, n->graph = g;
    for (size_t i = 0; i < count; i++) add_before(n, before[i]);
    g->nodes = realloc(g->nodes, (g->count + 1) * sizeof *g->nodes);
    g->nodes[g->count++] = n;
    return n;
}

struct node *graph_find(const struct graph *g, const struct node *origin) {
    for (u32 i = 0; i < g->count; i++)
        if (g->nodes[i]->origin == origin) return g->nodes[i];
    return NULL;
}

static void copy_content(struct node *to, const struct node *from);

struct graph *graph_copy(const struct graph *g) {
    struct graph *copy = graph_create();
    for (u32 i = 0; i < g->count; i++) {
        struct node *n = graph_add(copy, g->nodes[i]->type, NULL, 0);
        n->origin = g->nodes[i];
        copy_content(n, g->nodes[i]);
    }
    for (u32 i = 0; i < g->count; i++)
        for (u32 k = 0; k < g->nodes[i]->before_count; k++) add_before(copy->nodes[i], graph_find(copy, g->nodes[i]->before[k]));
    return copy;
}

static void free_content(struct node *n) {
    if (n->type == cudaGraphNodeTypeKernel) free(n->kernel.args), free(n->kernel.bytes);
}
static void free_node(struct node *n) {
    free_content(n);
    free(n->before);
    free(n);
}

struct node **graph_order(struct graph *g) {
    struct node **order = malloc((g->count + 1) * sizeof *order);
    for (u32 i = 0; i < g->count; i++) g->nodes[i]->done = 0;
    for (u32 n = 0; n < g->count;) {
        u32 before = n;
        for (u32 i = 0; i < g->count; i++) {
            struct node *x = g->nodes[i];
            int ready = !x->done;
            for (u32 k = 0; k < x->before_count && ready; k++) ready = x->before[k]->done;
            if (ready) order[n++] = x, x->done = 1;
        }
        if (n == before) {
            free(order);
            return NULL;
        }
    }
    return order;
}

/* ---- parameters of nodes -------------------------------------------------------------------------------------------------- */

/* Copies the arguments into new memory, in the layout of the kernel's parameters. */
int node_set_kernel(struct node *n, const struct cudaKernelNodeParams *p) {
    const struct kernel_info *k = p ? kernel_info_of(p->func) : NULL;
    if (!k || p->extra) return 0;
    u8 *bytes = calloc(1, k->parameter_bytes + 1);
    void **args = calloc(k->parameter_count + 1, sizeof *args);
    for (u32 i = 0; i < k->parameter_count; i++) {
        args[i] = bytes + k->parameters[i].offset;
        memcpy(args[i], p->kernelParams[i], k->parameters[i].size);
    }
    free_content(n);
    int cooperative = n->kernel.cooperative;
    n->kernel = (typeof(n->kernel)){p->func, p->gridDim, p->blockDim, p->sharedMemBytes, cooperative, args, bytes};
    return 1;
}
int node_set_copy(struct node *n, const struct cudaMemcpy3DParms *p) {
    struct move m;
    if (!p || !move_of_parameters(p, &m)) return 0;
    n->copy.move = m, n->copy.given = *p;
    return 1;
}
static void set_copy_1d(struct node *n, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    n->copy.move = MOVE(to, from, bytes, kind);
    n->copy.given = (struct cudaMemcpy3DParms){.srcPtr = {(void *)from, bytes, bytes, 1}, .dstPtr = {to, bytes, bytes, 1}, .extent = {bytes, 1, 1}, .kind = kind};
}
static struct cudaMemsetParamsV2 wide_set(const struct cudaMemsetParams *p) {
    return (struct cudaMemsetParamsV2){p->dst, p->pitch, p->value, p->elementSize, p->width, p->height};
}
static struct cudaKernelNodeParams old_kernel(const struct cudaKernelNodeParamsV2 *p) {
    return (struct cudaKernelNodeParams){p->func, p->gridDim, p->blockDim, p->sharedMemBytes, p->kernelParams, p->extra};
}

static void copy_content(struct node *to, const struct node *from) {
    if (from->type == cudaGraphNodeTypeKernel) {
        to->kernel.cooperative = from->kernel.cooperative;
        node_set_kernel(to, &(struct cudaKernelNodeParams){(void *)from->kernel.host, from->kernel.grid, from->kernel.block, from->kernel.shared, from->kernel.args, NULL});
    } else if (from->type == cudaGraphNodeTypeGraph)
        to->child = graph_copy(from->child);
    else
        to->memory = from->memory, to->copy = from->copy;
    to->disabled = from->disabled;
}

int node_set_parameters(struct node *n, const struct cudaGraphNodeParams *p) {
    switch (p->type) {
    case cudaGraphNodeTypeKernel: {
        struct cudaKernelNodeParams k = old_kernel(&p->kernel);
        return node_set_kernel(n, &k);
    }
    case cudaGraphNodeTypeMemcpy: return node_set_copy(n, &p->memcpy.copyParams);
    case cudaGraphNodeTypeMemset: n->set = p->memset; return p->memset.dst != NULL;
    case cudaGraphNodeTypeHost: n->function = (struct cudaHostNodeParams){p->host.fn, p->host.userData}; return p->host.fn != NULL;
    case cudaGraphNodeTypeGraph:
        if (!p->graph.graph) return 0;
        n->child = graph_copy((struct graph *)p->graph.graph);
        return 1;
    case cudaGraphNodeTypeEmpty: return 1;
    case cudaGraphNodeTypeWaitEvent: n->event = p->eventWait.event; return n->event != NULL;
    case cudaGraphNodeTypeEventRecord: n->event = p->eventRecord.event; return n->event != NULL;
    default: return 0;
    }
}

/* ---- adding --------------------------------------------------------------------------------------------------------------- */

static cudaError_t added(const char *function, cudaGraphNode_t *out, struct node *n, int good) {
    if (!good) {
        n->graph->count--;
        free_node(n);
        return (cudaError_t)api_result(function, cudaErrorInvalidValue);
    }
    *out = (cudaGraphNode_t)n;
    return (cudaError_t)api_result(function, cudaSuccess);
}
#define NEW(type) \
    if (!out || !g || (n && !before)) return API(cudaErrorInvalidValue); \
    struct node *node = graph_add((struct graph *)g, type, (struct node *const *)before, n)
#define WHERE cudaGraphNode_t *out, cudaGraph_t g, const cudaGraphNode_t *before, size_t n

cudaError_t cudaGraphCreate(cudaGraph_t *out, unsigned flags) {
    if (!out || flags) return API(cudaErrorInvalidValue);
    *out = (cudaGraph_t)graph_create();
    return API(cudaSuccess);
}
cudaError_t cudaGraphAddKernelNode(WHERE, const struct cudaKernelNodeParams *p) { NEW(cudaGraphNodeTypeKernel); return added(__func__, out, node, node_set_kernel(node, p)); }
cudaError_t cudaGraphAddMemcpyNode(WHERE, const struct cudaMemcpy3DParms *p) { NEW(cudaGraphNodeTypeMemcpy); return added(__func__, out, node, node_set_copy(node, p)); }
cudaError_t cudaGraphAddMemcpyNode1D(WHERE, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    NEW(cudaGraphNodeTypeMemcpy);
    set_copy_1d(node, to, from, bytes, kind);
    return added(__func__, out, node, to && from);
}
static int set_copy_symbol(struct node *node, const void *symbol, void *other, size_t bytes, size_t offset, enum cudaMemcpyKind kind, int to_symbol) {
    void *at;
    if (cudaGetSymbolAddress(&at, symbol) != cudaSuccess) return 0;
    at = (u8 *)at + offset;
    set_copy_1d(node, to_symbol ? at : other, to_symbol ? other : at, bytes, kind);
    return 1;
}
cudaError_t cudaGraphAddMemcpyNodeToSymbol(WHERE, const void *symbol, const void *from, size_t bytes, size_t offset, enum cudaMemcpyKind kind) {
    NEW(cudaGraphNodeTypeMemcpy);
    return added(__func__, out, node, set_copy_symbol(node, symbol, (void *)from, bytes, offset, kind, 1));
}
cudaError_t cudaGraphAddMemcpyNodeFromSymbol(WHERE, void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind) {
    NEW(cudaGraphNodeTypeMemcpy);
    return added(__func__, out, node, set_copy_symbol(node, symbol, to, bytes, offset, kind, 0));
}
cudaError_t cudaGraphAddMemsetNode(WHERE, const struct cudaMemsetParams *p) { NEW(cudaGraphNodeTypeMemset); node->set = wide_set(p); return added(__func__, out, node, p->dst != NULL); }
cudaError_t cudaGraphAddHostNode(WHERE, const struct cudaHostNodeParams *p) { NEW(cudaGraphNodeTypeHost); node->function = *p; return added(__func__, out, node, p->fn != NULL); }
cudaError_t cudaGraphAddChildGraphNode(WHERE, cudaGraph_t child) {
    if (!child) return API(cudaErrorInvalidValue);
    NEW(cudaGraphNodeTypeGraph);
    node->child = graph_copy((struct graph *)child);
    return added(__func__, out, node, 1);
}
cudaError_t cudaGraphAddEmptyNode(WHERE) { NEW(cudaGraphNodeTypeEmpty); return added(__func__, out, node, 1); }
cudaError_t cudaGraphAddEventRecordNode(WHERE, cudaEvent_t e) { NEW(cudaGraphNodeTypeEventRecord); node->event = e; return added(__func__, out, node, e != NULL); }
cudaError_t cudaGraphAddEventWaitNode(WHERE, cudaEvent_t e) { NEW(cudaGraphNodeTypeWaitEvent); node->event = e; return added(__func__, out, node, e != NULL); }
cudaError_t cudaGraphAddMemAllocNode(WHERE, struct cudaMemAllocNodeParams *p) {
    HOST_CALL();
    NEW(cudaGraphNodeTypeMemAlloc);
    cudaError_t e = p ? cudaMalloc(&p->dptr, p->bytesize) : cudaErrorInvalidValue;
    if (p) node->memory.p = p->dptr, node->memory.given = *p;
    return added(__func__, out, node, e == cudaSuccess);
}
cudaError_t cudaGraphAddMemFreeNode(WHERE, void *p) { NEW(cudaGraphNodeTypeMemFree); node->memory.p = p; return added(__func__, out, node, p != NULL); }
cudaError_t cudaGraphAddNode(cudaGraphNode_t *out, cudaGraph_t g, const cudaGraphNode_t *before, const cudaGraphEdgeData *edges, size_t n, struct cudaGraphNodeParams *p) {
    (void)edges;
    if (p->type == cudaGraphNodeTypeConditional)
        return (cudaError_t)api_error(__func__, cudaErrorNotSupported, "emulator_lacks", "what:conditional graph nodes\ninstead:decide on the host, between two graph launches");
    if (p->type == cudaGraphNodeTypeMemAlloc) {
        struct cudaMemAllocNodeParams old = {.poolProps = p->alloc.poolProps, .bytesize = p->alloc.bytesize};
        cudaError_t e = cudaGraphAddMemAllocNode(out, g, before, n, &old);
        p->alloc.dptr = old.dptr;
        return e;
    }
    if (p->type == cudaGraphNodeTypeMemFree) return cudaGraphAddMemFreeNode(out, g, before, n, p->free.dptr);
    NEW(p->type);
    return added(__func__, out, node, node_set_parameters(node, p));
}

/* ---- queries -------------------------------------------------------------------------------------------------------------- */

#define NODE(kind) ((struct node *)node)->type != (kind)
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *p) {
    if (NODE(cudaGraphNodeTypeKernel)) return API(cudaErrorInvalidValue);
    const struct node *n = (struct node *)node;
    *p = (struct cudaKernelNodeParams){(void *)n->kernel.host, n->kernel.grid, n->kernel.block, n->kernel.shared, n->kernel.args, NULL};
    return API(cudaSuccess);
}
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms *p) {
    if (NODE(cudaGraphNodeTypeMemcpy)) return API(cudaErrorInvalidValue);
    const struct node *n = (struct node *)node;
    const struct move *m = &n->copy.move;
    *p = n->copy.given;
    if (!p->extent.width)
        *p = (struct cudaMemcpy3DParms){.srcPtr = {(void *)m->from, m->from_pitch, m->width, m->rows}, .dstPtr = {m->to, m->to_pitch, m->width, m->rows},
                                        .extent = {m->width, m->rows, m->planes}, .kind = m->kind};
    return API(cudaSuccess);
}
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams *p) {
    if (NODE(cudaGraphNodeTypeMemset)) return API(cudaErrorInvalidValue);
    const struct cudaMemsetParamsV2 *s = &((struct node *)node)->set;
    *p = (struct cudaMemsetParams){s->dst, s->pitch, s->value, s->elementSize, s->width, s->height};
    return API(cudaSuccess);
}
cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams *p) { *p = ((struct node *)node)->function; return API(NODE(cudaGraphNodeTypeHost) ? cudaErrorInvalidValue : cudaSuccess); }
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *g) { *g = (cudaGraph_t)((struct node *)node)->child; return API(NODE(cudaGraphNodeTypeGraph) ? cudaErrorInvalidValue : cudaSuccess); }
cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *e) { *e = ((struct node *)node)->event; return API(NODE(cudaGraphNodeTypeEventRecord) ? cudaErrorInvalidValue : cudaSuccess); }
cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *e) { *e = ((struct node *)node)->event; return API(NODE(cudaGraphNodeTypeWaitEvent) ? cudaErrorInvalidValue : cudaSuccess); }
cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, struct cudaMemAllocNodeParams *p) { *p = ((struct node *)node)->memory.given; return API(NODE(cudaGraphNodeTypeMemAlloc) ? cudaErrorInvalidValue : cudaSuccess); }
cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *p) { *(void **)p = ((struct node *)node)->memory.p; return API(NODE(cudaGraphNodeTypeMemFree) ? cudaErrorInvalidValue : cudaSuccess); }
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type) { *type = ((struct node *)node)->type; return API(cudaSuccess); }
cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id, cudaLaunchAttributeValue *value) {
    memset(value, 0, sizeof *value);
    if (id == cudaLaunchAttributeCooperative) value->cooperative = ((struct node *)node)->kernel.cooperative;
    return API(NODE(cudaGraphNodeTypeKernel) ? cudaErrorInvalidValue : cudaSuccess);
}

/* ---- updates -------------------------------------------------------------------------------------------------------------- */

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id, const cudaLaunchAttributeValue *value) {
    if (NODE(cudaGraphNodeTypeKernel)) return API(cudaErrorInvalidValue);
    if (id == cudaLaunchAttributeCooperative) ((struct node *)node)->kernel.cooperative = value->cooperative;
    return API(cudaSuccess);
}
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) { ((struct node *)to)->kernel.cooperative = ((struct node *)from)->kernel.cooperative; return API(cudaSuccess); }
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams *p) { return API(NODE(cudaGraphNodeTypeKernel) || !node_set_kernel((struct node *)node, p) ? cudaErrorInvalidValue : cudaSuccess); }
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const struct cudaMemcpy3DParms *p) { return API(NODE(cudaGraphNodeTypeMemcpy) || !node_set_copy((struct node *)node, p) ? cudaErrorInvalidValue : cudaSuccess); }
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    if (NODE(cudaGraphNodeTypeMemcpy)) return API(cudaErrorInvalidValue);
    set_copy_1d((struct node *)node, to, from, bytes, kind);
    return API(cudaSuccess);
}
cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol, const void *from, size_t bytes, size_t offset, enum cudaMemcpyKind kind) {
    return API(NODE(cudaGraphNodeTypeMemcpy) || !set_copy_symbol((struct node *)node, symbol, (void *)from, bytes, offset, kind, 1) ? cudaErrorInvalidValue : cudaSuccess);
}
cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind) {
    return API(NODE(cudaGraphNodeTypeMemcpy) || !set_copy_symbol((struct node *)node, symbol, to, bytes, offset, kind, 0) ? cudaErrorInvalidValue : cudaSuccess);
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const struct cudaMemsetParams *p) { if (NODE(cudaGraphNodeTypeMemset)) return API(cudaErrorInvalidValue); ((struct node *)node)->set = wide_set(p); return API(cudaSuccess); }
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const struct cudaHostNodeParams *p) { if (NODE(cudaGraphNodeTypeHost)) return API(cudaErrorInvalidValue); ((struct node *)node)->function = *p; return API(cudaSuccess); }
cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t e) { if (NODE(cudaGraphNodeTypeEventRecord)) return API(cudaErrorInvalidValue); ((struct node *)node)->event = e; return API(cudaSuccess); }
cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t e) { if (NODE(cudaGraphNodeTypeWaitEvent)) return API(cudaErrorInvalidValue); ((struct node *)node)->event = e; return API(cudaSuccess); }
cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *p) { return API(NODE(p->type) || !node_set_parameters((struct node *)node, p) ? cudaErrorInvalidValue : cudaSuccess); }

/* ---- shape ---------------------------------------------------------------------------------------------------------------- */

/* The answer of a query: only the number of items if `out` is NULL, otherwise the items, at most `room` of them. */
struct answer { void **out; size_t room, count; };
static void put(struct answer *a, void *value) {
    if (a->out && a->count < a->room) a->out[a->count] = value;
    a->count++;
}
static void close_answer(const struct answer *a, size_t *n) {
    for (size_t i = a->count; a->out && i < a->room; i++) a->out[i] = NULL;
    *n = a->out && a->room < a->count ? a->room : a->count;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t *nodes, size_t *n) {
    struct answer a = {(void **)nodes, *n, 0};
    for (u32 i = 0; i < ((struct graph *)g)->count; i++) put(&a, ((struct graph *)g)->nodes[i]);
    close_answer(&a, n);
    return API(cudaSuccess);
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t g, cudaGraphNode_t *nodes, size_t *n) {
    struct answer a = {(void **)nodes, *n, 0};
    for (u32 i = 0; i < ((struct graph *)g)->count; i++)
        if (!((struct graph *)g)->nodes[i]->before_count) put(&a, ((struct graph *)g)->nodes[i]);
    close_answer(&a, n);
    return API(cudaSuccess);
}
cudaError_t cudaGraphGetEdges(cudaGraph_t handle, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *data, size_t *n) {
    const struct graph *g = (struct graph *)handle;
    struct answer a = {(void **)from, *n, 0}, b = {(void **)to, *n, 0};
    if (data) memset(data, 0, *n * sizeof *data);
    for (u32 i = 0; i < g->count; i++)
        for (u32 k = 0; k < g->nodes[i]->before_count; k++) put(&a, g->nodes[i]->before[k]), put(&b, g->nodes[i]);
    close_answer(&b, n);
    return API(cudaSuccess);
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *data, size_t *n) {
    struct answer a = {(void **)nodes, *n, 0};
    if (data) memset(data, 0, *n * sizeof *data);
    for (u32 i = 0; i < ((struct node *)node)->before_count; i++) put(&a, ((struct node *)node)->before[i]);
    close_answer(&a, n);
    return API(cudaSuccess);
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *data, size_t *n) {
    struct answer a = {(void **)nodes, *n, 0};
    const struct graph *g = ((struct node *)node)->graph;
    if (data) memset(data, 0, *n * sizeof *data);
    for (u32 i = 0; i < g->count; i++)
        for (u32 k = 0; k < g->nodes[i]->before_count; k++)
            if (g->nodes[i]->before[k] == (struct node *)node) put(&a, g->nodes[i]);
    close_answer(&a, n);
    return API(cudaSuccess);
}
static void remove_before(struct node *n, const struct node *earlier) {
    for (u32 i = 0; i < n->before_count; i++)
        if (n->before[i] == earlier) n->before[i--] = n->before[--n->before_count];
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t g, const cudaGraphNode_t *from, const cudaGraphNode_t *to, const cudaGraphEdgeData *data, size_t n) {
    (void)g, (void)data;
    for (size_t i = 0; i < n; i++) add_before((struct node *)to[i], (struct node *)from[i]);
    return API(cudaSuccess);
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t g, const cudaGraphNode_t *from, const cudaGraphNode_t *to, const cudaGraphEdgeData *data, size_t n) {
    (void)g, (void)data;
    for (size_t i = 0; i < n; i++) remove_before((struct node *)to[i], (struct node *)from[i]);
    return API(cudaSuccess);
}
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
    struct graph *g = ((struct node *)node)->graph;
    for (u32 i = 0; i < g->count; i++) remove_before(g->nodes[i], (struct node *)node);
    for (u32 i = 0; i < g->count; i++)
        if (g->nodes[i] == (struct node *)node) {
            memmove(&g->nodes[i], &g->nodes[i + 1], (--g->count - i) * sizeof *g->nodes);
            break;
        }
    free_node((struct node *)node);
    return API(cudaSuccess);
}
cudaError_t cudaGraphClone(cudaGraph_t *out, cudaGraph_t g) { *out = (cudaGraph_t)graph_copy((struct graph *)g); return API(cudaSuccess); }
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *out, cudaGraphNode_t node, cudaGraph_t clone) {
    *out = (cudaGraphNode_t)graph_find((struct graph *)clone, (struct node *)node);
    return API(*out ? cudaSuccess : cudaErrorInvalidValue);
}
/* Frees nothing, because executable graphs identify their nodes by the originals' addresses. */
cudaError_t cudaGraphDestroy(cudaGraph_t g) { return API(g ? cudaSuccess : cudaErrorInvalidValue); }

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t handle, const char *path, unsigned flags) {
    static const char *const names[] = {"kernel", "memcpy", "memset", "host", "graph", "empty", "wait event", "event record"};
    const struct graph *g = (struct graph *)handle;
    FILE *f = fopen(path, "w");
    (void)flags;
    if (!f) return API(cudaErrorOperatingSystem);
    fprintf(f, "digraph dot {\n");
    for (u32 i = 0; i < g->count; i++) {
        const struct node *n = g->nodes[i];
        fprintf(f, "\"%p\" [label=\"%s\"];\n", (void *)n, n->type == cudaGraphNodeTypeKernel ? demangle(kernel_info_of(n->kernel.host)->name) : n->type < 8 ? names[n->type] : "memory");
        for (u32 k = 0; k < n->before_count; k++) fprintf(f, "\"%p\" -> \"%p\";\n", (void *)n->before[k], (void *)n);
    }
    fprintf(f, "}\n");
    fclose(f);
    return API(cudaSuccess);
}

/* ---- user objects: graphs, and so the objects that they retain, exist until the program ends ------------------------------ */

struct user_object { void *p; cudaHostFn_t destroy; unsigned count; };
cudaError_t cudaUserObjectCreate(cudaUserObject_t *out, void *p, cudaHostFn_t destroy, unsigned count, unsigned flags) {
    (void)flags;
    struct user_object *o = malloc(sizeof *o);
    *o = (struct user_object){p, destroy, count};
    *out = (cudaUserObject_t)o;
    return API(cudaSuccess);
}
cudaError_t cudaUserObjectRetain(cudaUserObject_t o, unsigned count) { ((struct user_object *)o)->count += count; return API(cudaSuccess); }
cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
    struct user_object *o = (struct user_object *)object;
    if (count > o->count) return API(cudaErrorInvalidValue);
    if (!(o->count -= count)) o->destroy(o->p);
    return API(cudaSuccess);
}
cudaError_t cudaGraphRetainUserObject(cudaGraph_t g, cudaUserObject_t o, unsigned count, unsigned flags) { (void)g; return flags & cudaGraphUserObjectMove ? API(cudaSuccess) : cudaUserObjectRetain(o, count); }
cudaError_t cudaGraphReleaseUserObject(cudaGraph_t g, cudaUserObject_t o, unsigned count) { (void)g; return cudaUserObjectRelease(o, count); }
