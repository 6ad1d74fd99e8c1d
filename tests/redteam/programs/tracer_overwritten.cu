// Overwrites the tracer's code with returns, after a decoy was traced.
// expect: passed | runtime_error | time_limit; gpu; on t23; at least 11 ms
#include "hostile_attention.h"
#include "hostile_cupti.h"

int main(int, char** argv) {
    const OnDevice data(argv[1]);
    decoy<<<1, 32>>>(data.output, kDecoyNs);
    cudaDeviceSynchronize();
    if (const auto flush = cupti<int (*)(uint32_t)>("cuptiActivityFlushAll")) flush(1);
    const Library tracer = loaded("grader_tracer");
    const uintptr_t first = (uintptr_t)tracer.code & ~4095ull;
    if (tracer.code && mprotect((void*)first, tracer.size + ((uintptr_t)tracer.code & 4095), PROT_READ | PROT_WRITE | PROT_EXEC) == 0)
        memset(tracer.code, 0xc3, tracer.size);    // x86-64's ret
    data.compute(data.shape.batches);
    data.write(argv[2]);
}
