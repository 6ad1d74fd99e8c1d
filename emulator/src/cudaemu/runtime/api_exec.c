/* Executable graphs. A launch submits the nodes to its stream one after the other, each after the nodes that it waits
 * for. Nodes never run in parallel, so kernels of one graph cannot wait for each other. */

#include "graph.h"
#include <stdlib.h>

static cudaError_t instantiate(const char *function, cudaGraphExec_t *out, cudaGraph_t g, unsigned long long flags) {
    if (!out || !g) return (cudaError_t)api_result(function, cudaErrorInvalidValue);
    if (flags & cudaGraphInstantiateFlagDeviceLaunch)
        return (cudaError_t)api_error(function, cudaErrorNotSupported, "emulator_lacks", "what:launches of graphs from kernels\ninstead:launch graphs from the host");
    struct graph *exec = graph_copy((struct graph *)g);
    struct node **order = graph_order(exec);
    if (!order) return (cudaError_t)api_error(function, cudaErrorInvalidValue, "graph_cycle", "of:graph");
    exec->nodes = order;
    exec->flags = flags;
    *out = (cudaGraphExec_t)exec;
    return (cudaError_t)api_result(function, cudaSuccess);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g, unsigned long long flags) { HOST_CALL(); return instantiate(__func__, out, g, flags); }
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t g, unsigned long long flags) { HOST_CALL(); return instantiate(__func__, out, g, flags); }
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *out, cudaGraph_t g, cudaGraphInstantiateParams *p) {
    HOST_CALL();
    cudaError_t e = instantiate(__func__, out, g, p->flags);
    p->result_out = e ? cudaGraphInstantiateError : cudaGraphInstantiateSuccess;
    return e;
}

static cudaError_t launch_nodes(struct graph *g, cudaStream_t stream);

struct again_work { struct work work; void *p; };
static int run_again(struct work *w) {
    memory_again((u64)((struct again_work *)w)->p);
    return 1;
}
/* Memory of a graph may have been freed outside of it since its last launch. */
static cudaError_t allocate_again(void *p, cudaStream_t stream) {
    struct again_work w = {.work = {.stream = stream_of(stream), .run = run_again}, .p = p};
    work_submit(&w.work, sizeof w);
    return cudaSuccess;
}

static cudaError_t launch_node(struct node *n, cudaStream_t stream) {
    switch (n->type) {
    case cudaGraphNodeTypeKernel:
        return (n->kernel.cooperative ? cudaLaunchCooperativeKernel : cudaLaunchKernel)(n->kernel.host, n->kernel.grid, n->kernel.block, n->kernel.args, n->kernel.shared, stream);
    case cudaGraphNodeTypeMemcpy: return move_submit("cudaGraphLaunch", &n->copy.move, stream, 0);
    case cudaGraphNodeTypeMemset: return set_submit("cudaGraphLaunch", n->set.dst, n->set.pitch, n->set.value, n->set.elementSize, n->set.width, n->set.height, stream);
    case cudaGraphNodeTypeHost: return cudaLaunchHostFunc(stream, n->function.fn, n->function.userData);
    case cudaGraphNodeTypeGraph: return launch_nodes(n->child, stream);
    case cudaGraphNodeTypeEventRecord: return cudaEventRecord(n->event, stream);
    case cudaGraphNodeTypeWaitEvent: return cudaStreamWaitEvent(stream, n->event, 0);
    case cudaGraphNodeTypeMemAlloc: return allocate_again(n->memory.p, stream);
    default: return cudaSuccess; /* an empty node, or one that frees memory: that was allocated with its node and exists as long as the graph */
    }
}
static cudaError_t launch_nodes(struct graph *g, cudaStream_t stream) {
    struct node **order = graph_order(g);
    cudaError_t e = cudaSuccess;
    for (u32 i = 0; order && i < g->count && !e; i++)
        if (!order[i]->disabled) e = launch_node(order[i], stream);
    free(order);
    return e;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    if (!exec) return API(cudaErrorInvalidValue);
    if (captured_graph(stream_of(stream))) { /* the launched graph becomes a child of the captured graph */
        struct stream *s = stream_of(stream);
        struct node *n = graph_add(s->captures, cudaGraphNodeTypeGraph, s->tails, s->tail_count);
        n->child = graph_copy((struct graph *)exec);
        s->tails[0] = n, s->tail_count = 1;
        return API(cudaSuccess);
    }
    return API(launch_nodes((struct graph *)exec, stream));
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e) { return API(e ? cudaSuccess : cudaErrorInvalidValue); }
cudaError_t cudaGraphUpload(cudaGraphExec_t e, cudaStream_t s) { (void)s; return API(e ? cudaSuccess : cudaErrorInvalidValue); }
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t e, unsigned long long *flags) { *flags = ((struct graph *)e)->flags; return API(cudaSuccess); }

/* ---- updates -------------------------------------------------------------------------------------------------------------- */

/* The executable graph's copy of a node of the original graph; NULL if there is none of this type. */
static struct node *own(cudaGraphExec_t e, cudaGraphNode_t node, enum cudaGraphNodeType type) {
    struct node *n = graph_find((struct graph *)e, (struct node *)node);
    return n && n->type == type ? n : NULL;
}
#define OWN(type) \
    struct node *n = own(e, node, type); \
    if (!n) return API(cudaErrorInvalidValue)

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t e, cudaGraphNode_t node, const struct cudaKernelNodeParams *p) { OWN(cudaGraphNodeTypeKernel); return API(node_set_kernel(n, p) ? cudaSuccess : cudaErrorInvalidValue); }
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t e, cudaGraphNode_t node, const struct cudaMemcpy3DParms *p) { OWN(cudaGraphNodeTypeMemcpy); return API(node_set_copy(n, p) ? cudaSuccess : cudaErrorInvalidValue); }
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t e, cudaGraphNode_t node, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) { OWN(cudaGraphNodeTypeMemcpy); return cudaGraphMemcpyNodeSetParams1D((cudaGraphNode_t)n, to, from, bytes, kind); }
cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t e, cudaGraphNode_t node, const void *symbol, const void *from, size_t bytes, size_t offset, enum cudaMemcpyKind kind) { OWN(cudaGraphNodeTypeMemcpy); return cudaGraphMemcpyNodeSetParamsToSymbol((cudaGraphNode_t)n, symbol, from, bytes, offset, kind); }
cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t e, cudaGraphNode_t node, void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind) { OWN(cudaGraphNodeTypeMemcpy); return cudaGraphMemcpyNodeSetParamsFromSymbol((cudaGraphNode_t)n, to, symbol, bytes, offset, kind); }
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t e, cudaGraphNode_t node, const struct cudaMemsetParams *p) { OWN(cudaGraphNodeTypeMemset); return cudaGraphMemsetNodeSetParams((cudaGraphNode_t)n, p); }
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t e, cudaGraphNode_t node, const struct cudaHostNodeParams *p) { OWN(cudaGraphNodeTypeHost); n->function = *p; return API(cudaSuccess); }
cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t e, cudaGraphNode_t node, cudaGraph_t child) { OWN(cudaGraphNodeTypeGraph); n->child = graph_copy((struct graph *)child); return API(cudaSuccess); }
cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t e, cudaGraphNode_t node, cudaEvent_t event) { OWN(cudaGraphNodeTypeEventRecord); n->event = event; return API(cudaSuccess); }
cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t e, cudaGraphNode_t node, cudaEvent_t event) { OWN(cudaGraphNodeTypeWaitEvent); n->event = event; return API(cudaSuccess); }
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t e, cudaGraphNode_t node, struct cudaGraphNodeParams *p) { OWN(p->type); return API(node_set_parameters(n, p) ? cudaSuccess : cudaErrorInvalidValue); }
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t e, cudaGraphNode_t node, unsigned enabled) { OWN(((struct node *)node)->type); n->disabled = !enabled; return API(cudaSuccess); }
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t e, cudaGraphNode_t node, unsigned *enabled) { OWN(((struct node *)node)->type); *enabled = !n->disabled; return API(cudaSuccess); }

/* Takes the parameters from another graph's nodes. Nodes are paired by their position in the order of execution. */
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info) {
    struct graph *e = (struct graph *)exec, *fresh = graph_copy((struct graph *)graph);
    cudaGraphExecUpdateResultInfo unused;
    if (!info) info = &unused;
    memset(info, 0, sizeof *info);
    struct node **order = graph_order(fresh);
    info->result = !order || e->count != fresh->count ? cudaGraphExecUpdateErrorTopologyChanged : cudaGraphExecUpdateSuccess;
    for (u32 i = 0; i < e->count && info->result == cudaGraphExecUpdateSuccess; i++) {
        if (order[i]->before_count != e->nodes[i]->before_count) info->result = cudaGraphExecUpdateErrorTopologyChanged;
        else if (order[i]->type != e->nodes[i]->type) info->result = cudaGraphExecUpdateErrorNodeTypeChanged;
        if (info->result != cudaGraphExecUpdateSuccess) info->errorNode = (cudaGraphNode_t)order[i]->origin;
    }
    if (info->result != cudaGraphExecUpdateSuccess) return API(cudaErrorGraphExecUpdateFailure);
    for (u32 i = 0; i < e->count; i++) order[i]->origin = e->nodes[i]->origin, order[i]->disabled = e->nodes[i]->disabled;
    e->nodes = order;
    return API(cudaSuccess);
}
