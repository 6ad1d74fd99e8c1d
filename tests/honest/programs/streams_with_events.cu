// Three streams: one copies in, one computes, one copies out; events order them and are timed.
#include "honest.h"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::FILE* const file = std::fopen(argv[1], "rb");
    const Shape shape = read_shape(file);
    const size_t count = shape.count(), batch = size_t(shape.n) * shape.d;
    float *values, *input, *output;
    must(cudaMallocHost(&values, 4 * count * 4));
    read_values(file, values, 3 * count);
    must(cudaMalloc(&input, 3 * count * 4));
    must(cudaMalloc(&output, count * 4));
    cudaStream_t in, work, out;
    for (cudaStream_t* stream : {&in, &work, &out}) must(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
    cudaEvent_t begin, end;
    must(cudaEventCreate(&begin));
    must(cudaEventCreate(&end));
    must(cudaEventRecord(begin, in));
    for (int i = 0; i < shape.batches; ++i) {
        cudaEvent_t copied, computed;
        must(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
        must(cudaEventCreateWithFlags(&computed, cudaEventDisableTiming));
        must(cudaMemcpyAsync(input + 3 * i * batch, values + 3 * i * batch, 3 * batch * 4, cudaMemcpyHostToDevice, in));
        must(cudaEventRecord(copied, in));
        must(cudaStreamWaitEvent(work, copied, 0));
        launch(input + 3 * i * batch, output + i * batch, 1, shape.n, shape.d, work);
        must(cudaEventRecord(computed, work));
        must(cudaStreamWaitEvent(out, computed, 0));
        must(cudaMemcpyAsync(values + 3 * count + i * batch, output + i * batch, batch * 4, cudaMemcpyDeviceToHost, out));
        must(cudaEventDestroy(copied));
        must(cudaEventDestroy(computed));
    }
    must(cudaEventRecord(end, out));
    must(cudaEventSynchronize(end));
    float ms = 0;
    must(cudaEventElapsedTime(&ms, begin, end));
    std::printf("%.3f ms\n", ms);
    write_values(argv[2], values + 3 * count, count);
}
