// Copies and kernels are captured into a graph, which is launched once.
#include "honest.h"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::FILE* const file = std::fopen(argv[1], "rb");
    const Shape shape = read_shape(file);
    const size_t count = shape.count();
    std::vector<float> values(3 * count), result(count);
    read_values(file, values.data(), 3 * count);
    float *input, *output;
    must(cudaMalloc(&input, 3 * count * 4));
    must(cudaMalloc(&output, count * 4));
    cudaStream_t stream;
    must(cudaStreamCreate(&stream));
    cudaGraph_t graph;
    cudaGraphExec_t launchable;
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    must(cudaMemcpyAsync(input, values.data(), 3 * count * 4, cudaMemcpyHostToDevice, stream));
    launch(input, output, shape.batches, shape.n, shape.d, stream);
    must(cudaMemcpyAsync(result.data(), output, count * 4, cudaMemcpyDeviceToHost, stream));
    must(cudaStreamEndCapture(stream, &graph));
    must(cudaGraphInstantiate(&launchable, graph, 0));
    must(cudaGraphLaunch(launchable, stream));
    must(cudaStreamSynchronize(stream));
    must(cudaGraphExecDestroy(launchable));
    must(cudaGraphDestroy(graph));
    write_values(argv[2], result.data(), count);
}
