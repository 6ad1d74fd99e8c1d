// Graphs: built node by node, captured, cloned, changed and updated.
#include "conformance.h"

__global__ void add(int *p, int amount, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] += amount;
}
__global__ void scale(int *p, int factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] *= factor;
}

// The parameters of a kernel node, with the arguments they point to.
struct Call {
    int *p;
    int value, n;
    void *arguments[3] = {&p, &value, &n};
    cudaKernelNodeParams params = {};
    Call(void (*kernel)(int *, int, int), int *p, int value, int n) : p(p), value(value), n(n) {
        params.func = (void *)kernel, params.gridDim = dim3((n + 127) / 128), params.blockDim = dim3(128), params.kernelParams = arguments;
    }
    Call(const Call &) = delete;
};
static bool run(cudaGraphExec_t exec, int times = 1) {
    for (int i = 0; i < times; i++)
        if (cudaGraphLaunch(exec, 0) != cudaSuccess) return false;
    return finished();
}

TEST(graphs_node_by_node) {
    const int n = 500;
    Array<int> x(n, 7);
    std::vector<int> out(n, -1);
    cudaGraph_t graph;
    cudaGraphNode_t set, plus, times, copy, host;
    static int calls;
    calls = 0;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaMemsetParams zero = {};
    zero.dst = x.device, zero.elementSize = 4, zero.width = n, zero.height = 1, zero.value = 5;
    Call a(add, x.device, 3, n), b(scale, x.device, 10, n);
    // added in another order than they run
    CHECK(cudaGraphAddKernelNode(&times, graph, nullptr, 0, &b.params));
    CHECK(cudaGraphAddKernelNode(&plus, graph, nullptr, 0, &a.params));
    CHECK(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &zero));
    CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &times, 1, out.data(), x.device, n * sizeof(int), cudaMemcpyDeviceToHost));
    cudaHostNodeParams call = {[](void *p) { ++*(int *)p; }, &calls};
    CHECK(cudaGraphAddHostNode(&host, graph, &copy, 1, &call));
    const cudaGraphNode_t from[] = {set, plus}, to[] = {plus, times};
    CHECK(cudaGraphAddDependencies(graph, from, to, nullptr, 2));
    a.value = 1000; // the node has its own copy
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    EXPECT(run(exec, 2) && calls == 2);
    EXPECT(equal(out, [](size_t) { return 80; }));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    return true;
}
TEST(what_a_graph_is_made_of) {
    Array<int> x(10);
    Call a(add, x.device, 1, 10);
    cudaGraph_t graph;
    cudaGraphNode_t first, left, right, last;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddEmptyNode(&first, graph, nullptr, 0));
    CHECK(cudaGraphAddKernelNode(&left, graph, &first, 1, &a.params));
    CHECK(cudaGraphAddEmptyNode(&right, graph, &first, 1));
    const cudaGraphNode_t both[] = {left, right};
    CHECK(cudaGraphAddEmptyNode(&last, graph, both, 2));
    size_t nodes = 0, roots = 0, edges = 0, before = 0, after = 0;
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    CHECK(cudaGraphGetRootNodes(graph, nullptr, &roots));
    CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
    CHECK(cudaGraphNodeGetDependencies(last, nullptr, nullptr, &before));
    CHECK(cudaGraphNodeGetDependentNodes(first, nullptr, nullptr, &after));
    EXPECT(nodes == 4 && roots == 1 && edges == 4 && before == 2 && after == 2);
    cudaGraphNode_t root;
    CHECK(cudaGraphGetRootNodes(graph, &root, &roots));
    EXPECT(root == first);
    cudaGraphNodeType type;
    CHECK(cudaGraphNodeGetType(left, &type));
    EXPECT(type == cudaGraphNodeTypeKernel);
    cudaKernelNodeParams p;
    CHECK(cudaGraphKernelNodeGetParams(left, &p));
    EXPECT(p.blockDim.x == 128 && p.gridDim.x == 1);
    CHECK(cudaGraphDestroyNode(right));
    CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
    EXPECT(edges == 2);
    CHECK(cudaGraphDestroy(graph));
    return true;
}
TEST(executable_graphs_are_changed) {
    Array<int> x(100), y(100, 4);
    Call a(add, x.device, 1, 100), other(add, x.device, 50, 100);
    cudaGraph_t graph;
    cudaGraphNode_t kernel, copy;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddKernelNode(&kernel, graph, nullptr, 0, &a.params));
    CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, y.device, x.device, 200, cudaMemcpyDeviceToDevice));
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    EXPECT(run(exec));
    CHECK(cudaGraphExecKernelNodeSetParams(exec, kernel, &other.params));
    CHECK(cudaGraphExecMemcpyNodeSetParams1D(exec, copy, y.device + 50, x.device, 200, cudaMemcpyDeviceToDevice));
    EXPECT(run(exec));
    CHECK(cudaGraphNodeSetEnabled(exec, kernel, 0));
    unsigned enabled = 1;
    CHECK(cudaGraphNodeGetEnabled(exec, kernel, &enabled));
    EXPECT(enabled == 0 && run(exec));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    return equal(x.down(), [](size_t) { return 51; }) && equal(y.down(), [](size_t i) { return i < 50 ? 1 : 51; });
}
TEST(graphs_in_graphs_and_clones) {
    Array<int> x(64, 1);
    Call a(add, x.device, 2, 64), b(scale, x.device, 3, 64), c(scale, x.device, 100, 64);
    cudaGraph_t inner, outer, clone;
    cudaGraphNode_t kernel, child, after, found;
    CHECK(cudaGraphCreate(&inner, 0));
    CHECK(cudaGraphAddKernelNode(&kernel, inner, nullptr, 0, &a.params));
    CHECK(cudaGraphCreate(&outer, 0));
    CHECK(cudaGraphAddChildGraphNode(&child, outer, nullptr, 0, inner));
    CHECK(cudaGraphAddKernelNode(&after, outer, &child, 1, &b.params));
    CHECK(cudaGraphClone(&clone, outer));
    CHECK(cudaGraphKernelNodeSetParams(after, &c.params)); // not the clone's
    CHECK(cudaGraphNodeFindInClone(&found, after, clone));
    EXPECT(found && found != after);
    cudaGraphExec_t one, two;
    CHECK(cudaGraphInstantiate(&one, clone, 0));
    CHECK(cudaGraphInstantiate(&two, outer, 0));
    EXPECT(run(one) && equal(x.down(), [](size_t) { return 9; }));
    EXPECT(run(two) && equal(x.down(), [](size_t) { return 1100; }));
    CHECK(cudaGraphExecDestroy(one));
    CHECK(cudaGraphExecDestroy(two));
    CHECK(cudaGraphDestroy(clone));
    CHECK(cudaGraphDestroy(outer));
    CHECK(cudaGraphDestroy(inner));
    return true;
}
TEST(capture_of_streams_that_part_and_meet) {
    Array<int> x(256, 1), y(256, 1);
    cudaStream_t a, b;
    cudaEvent_t fork, join;
    cudaGraph_t graph;
    CHECK(cudaStreamCreate(&a));
    CHECK(cudaStreamCreate(&b));
    CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    add<<<2, 128, 0, a>>>(x.device, 1, 256);
    CHECK(cudaEventRecord(fork, a));
    CHECK(cudaStreamWaitEvent(b, fork, 0));
    scale<<<2, 128, 0, a>>>(x.device, 5, 256);
    scale<<<2, 128, 0, b>>>(y.device, 7, 256);
    cudaStreamCaptureStatus status;
    CHECK(cudaStreamIsCapturing(b, &status));
    EXPECT(status == cudaStreamCaptureStatusActive);
    CHECK(cudaEventRecord(join, b));
    CHECK(cudaStreamWaitEvent(a, join, 0));
    CHECK(cudaMemcpyAsync(x.device, y.device, 4 * 10, cudaMemcpyDeviceToDevice, a));
    CHECK(cudaStreamEndCapture(a, &graph));
    CHECK(cudaStreamIsCapturing(b, &status));
    EXPECT(status == cudaStreamCaptureStatusNone);
    size_t nodes = 0, edges = 0, roots = 0;
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
    CHECK(cudaGraphGetRootNodes(graph, nullptr, &roots));
    EXPECT(nodes == 4 && edges == 4 && roots == 1);
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    EXPECT(run(exec));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaStreamDestroy(a));
    CHECK(cudaStreamDestroy(b));
    return equal(x.down(), [](size_t i) { return i < 10 ? 7 : 10; }) && equal(y.down(), [](size_t) { return 7; });
}
TEST(a_stream_left_apart_ends_the_capture_with_an_error) {
    Array<int> x(64);
    cudaStream_t a, b;
    cudaEvent_t fork;
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamCreate(&a));
    CHECK(cudaStreamCreate(&b));
    CHECK(cudaEventCreate(&fork));
    CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
    add<<<1, 64, 0, a>>>(x.device, 1, 64);
    CHECK(cudaEventRecord(fork, a));
    CHECK(cudaStreamWaitEvent(b, fork, 0));
    add<<<1, 64, 0, b>>>(x.device, 1, 64);
    EXPECT(cudaStreamEndCapture(a, &graph) == cudaErrorStreamCaptureUnjoined && graph == nullptr);
    cudaGetLastError();
    return finished() && equal(x.down(), [](size_t) { return 0; });
}
static bool capture(cudaStream_t s, cudaGraph_t *graph, int *p, int amount, bool twice) {
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    add<<<1, 64, 0, s>>>(p, amount, 64);
    if (twice) scale<<<1, 64, 0, s>>>(p, amount, 64);
    CHECK(cudaStreamEndCapture(s, graph));
    return true;
}
TEST(executable_graphs_are_updated_from_others) {
    Array<int> x(64);
    cudaStream_t s;
    cudaGraph_t one, two, longer;
    cudaGraphExec_t exec;
    cudaGraphExecUpdateResultInfo info;
    CHECK(cudaStreamCreate(&s));
    EXPECT(capture(s, &one, x.device, 1, false) && capture(s, &two, x.device, 20, false) && capture(s, &longer, x.device, 3, true));
    CHECK(cudaGraphInstantiate(&exec, one, 0));
    EXPECT(run(exec));
    CHECK(cudaGraphExecUpdate(exec, two, &info));
    EXPECT(info.result == cudaGraphExecUpdateSuccess && run(exec));
    EXPECT(cudaGraphExecUpdate(exec, longer, &info) == cudaErrorGraphExecUpdateFailure && info.result == cudaGraphExecUpdateErrorTopologyChanged);
    cudaGetLastError();
    EXPECT(run(exec));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaStreamDestroy(s));
    return equal(x.down(), [](size_t) { return 41; });
}
TEST(events_in_graphs) {
    Array<int> x(64);
    cudaEvent_t start, end;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    cudaGraph_t graph;
    cudaGraphNode_t first, kernel, last;
    CHECK(cudaGraphCreate(&graph, 0));
    Call a(add, x.device, 9, 64);
    CHECK(cudaGraphAddEventRecordNode(&first, graph, nullptr, 0, start));
    CHECK(cudaGraphAddKernelNode(&kernel, graph, &first, 1, &a.params));
    CHECK(cudaGraphAddEventRecordNode(&last, graph, &kernel, 1, end));
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    EXPECT(run(exec));
    CHECK(cudaEventSynchronize(end));
    float ms = -1;
    CHECK(cudaEventElapsedTime(&ms, start, end));
    EXPECT(ms > 0);
    cudaEvent_t event;
    CHECK(cudaGraphEventRecordNodeGetEvent(last, &event));
    EXPECT(event == end);
    return equal(x.down(), [](size_t) { return 9; });
}
TEST(nodes_of_any_type_by_one_function) {
    Array<int> x(64, 3);
    cudaGraph_t graph;
    cudaGraphNode_t set, kernel;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphNodeParams s = {}, k = {};
    s.type = cudaGraphNodeTypeMemset;
    s.memset.dst = x.device, s.memset.elementSize = 2, s.memset.value = 0x0102, s.memset.width = 64, s.memset.height = 1;
    CHECK(cudaGraphAddNode(&set, graph, nullptr, nullptr, 0, &s));
    int *p = x.device, amount = 1, n = 64;
    void *arguments[] = {&p, &amount, &n};
    k.type = cudaGraphNodeTypeKernel;
    k.kernel.func = (void *)add, k.kernel.gridDim = dim3(1), k.kernel.blockDim = dim3(64), k.kernel.kernelParams = arguments;
    CHECK(cudaGraphAddNode(&kernel, graph, &set, nullptr, 1, &k));
    cudaGraphExec_t exec;
    cudaGraphInstantiateParams how = {};
    CHECK(cudaGraphInstantiateWithParams(&exec, graph, &how));
    EXPECT(how.result_out == cudaGraphInstantiateSuccess && run(exec));
    return equal(x.down(), [](size_t i) { return i < 32 ? 0x01020103 : 4; });
}
TEST(memory_of_a_graph_is_freed_outside_and_allocated_again) {
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaMemAllocNodeParams memory = {};
    memory.poolProps.allocType = cudaMemAllocationTypePinned;
    memory.poolProps.location.type = cudaMemLocationTypeDevice;
    memory.bytesize = 256;
    cudaGraphNode_t allocated, set, kernel;
    CHECK(cudaGraphAddMemAllocNode(&allocated, graph, nullptr, 0, &memory));
    int *p = (int *)memory.dptr;
    cudaMemsetParams zero = {};
    zero.dst = p, zero.elementSize = 4, zero.width = 64, zero.height = 1;
    CHECK(cudaGraphAddMemsetNode(&set, graph, &allocated, 1, &zero));
    Call a(add, p, 7, 64);
    CHECK(cudaGraphAddKernelNode(&kernel, graph, &set, 1, &a.params));
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int round = 0; round < 3; round++) {
        std::vector<int> host(64);
        CHECK(cudaGraphLaunch(exec, stream));
        CHECK(cudaMemcpyAsync(host.data(), p, 256, cudaMemcpyDeviceToHost, stream));
        CHECK(round == 1 ? cudaFree(p) : cudaFreeAsync(p, stream));
        CHECK(cudaStreamSynchronize(stream));
        EXPECT(equal(host, [](size_t) { return 7; }));
    }
    return true;
}
