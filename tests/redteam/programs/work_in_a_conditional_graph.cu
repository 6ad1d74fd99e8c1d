// The real kernel lies in the body of a graph's conditional node; the host launches one graph.
// expect: passed | runtime_error | no_output; gpu; on t23; at least 11 ms
#include "hostile_attention.h"

int main(int, char** argv) {
    const OnDevice data(argv[1]);
    cudaGraph_t graph;
    cudaGraphCreate(&graph, 0);
    cudaGraphConditionalHandle handle;
    cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault);
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = cudaGraphCondTypeIf;
    params.conditional.size = 1;
    cudaGraphNode_t node;
    if (cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params) != cudaSuccess) return 1;
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaStreamBeginCaptureToGraph(stream, params.conditional.phGraph_out[0], nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed);
    data.compute(data.shape.batches, 0, stream);
    cudaStreamEndCapture(stream, nullptr);
    cudaGraphExec_t launchable;
    if (cudaGraphInstantiate(&launchable, graph, 0) != cudaSuccess) return 1;
    decoy<<<1, 32, 0, stream>>>(data.output, kDecoyNs);
    cudaGraphLaunch(launchable, stream);
    if (cudaStreamSynchronize(stream) != cudaSuccess) return 1;
    data.write(argv[2]);
}
