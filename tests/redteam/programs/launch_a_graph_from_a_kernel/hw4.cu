// A kernel launches a graph that holds the real one, which the tracer does not see.
// expect: passed; gpu; flagged; on t23
#include "hostile_attention.h"

__global__ void parent(cudaGraphExec_t graph) { cudaGraphLaunch(graph, cudaStreamGraphFireAndForget); }

int main(int, char** argv) {
    const OnDevice data(argv[1]);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaGraph_t graph, outer;
    cudaGraphExec_t inner, whole;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    data.compute(data.shape.batches, 0, stream);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&inner, graph, cudaGraphInstantiateFlagDeviceLaunch);
    cudaGraphUpload(inner, stream);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    parent<<<1, 1, 0, stream>>>(inner);
    cudaStreamEndCapture(stream, &outer);
    cudaGraphInstantiate(&whole, outer, 0);
    cudaGraphLaunch(whole, stream);
    data.write(argv[2]);
    return 0;
}
