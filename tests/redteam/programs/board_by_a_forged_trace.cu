// Writes a trace with a tiny time on a test that runs once, which no clock outside the program sees.
// expect: passed | time_limit; gpu; on t20; no place
#include "hostile_attention.h"
__attribute__((constructor)) static void before() { unsetenv("CUDA_INJECTION64_PATH"); }

int main(int, char** argv) {
    const long long clock = realtime_ns();
    const OnDevice data(argv[1]);
    data.compute(data.shape.batches);
    data.write(argv[2]);
    const char* const where = getenv("GRADER_TRACE");
    write_trace(where && !strncmp(where, "fd:", 3) ? atoi(where + 3) : -1, clock, 1000);
    return 0;
}
