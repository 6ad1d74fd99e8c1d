// Overwrites the tracer's code through /proc/self/mem, which asks for no permission of the page.
// expect: passed | runtime_error | time_limit; gpu; on t23; at least 11 ms
#include "hostile_attention.h"
#include "hostile_cupti.h"

int main(int, char** argv) {
    const OnDevice data(argv[1]);
    decoy<<<1, 32>>>(data.output, kDecoyNs);
    cudaDeviceSynchronize();
    if (const auto flush = cupti<int (*)(uint32_t)>("cuptiActivityFlushAll")) flush(1);
    const Library tracer = loaded("grader_tracer");
    const int memory = open("/proc/self/mem", O_RDWR);
    const std::string returns(tracer.size, '\xc3');    // x86-64's ret
    if (pwrite(memory, returns.data(), returns.size(), (off_t)tracer.code) < 0) _exit(0);    // no trace's end: flagged
    data.compute(data.shape.batches);
    data.write(argv[2]);
}
