// Computes on the GPU without the tracer, and writes the trace itself: one kernel, a little longer than the floor.
// expect: passed; gpu; flagged; on t23
#include "hostile_attention.h"
__attribute__((constructor)) static void before() { unsetenv("CUDA_INJECTION64_PATH"); }

int main(int, char** argv) {
    const long long clock = realtime_ns();
    const OnDevice data(argv[1]);
    data.compute(data.shape.batches);
    data.write(argv[2]);
    const char* const where = getenv("GRADER_TRACE");
    write_trace(where && !strncmp(where, "fd:", 3) ? atoi(where + 3) : -1, clock, kDecoyNs);
    return 0;
}
