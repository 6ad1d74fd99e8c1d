// Writes a trace of millions of kernels, with one that no GPU runs near its beginning.
// expect: passed; flagged
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    const char* const where = getenv("GRADER_TRACE");
    FILE* const trace = where ? fdopen(atoi(where + 3), "w") : nullptr;
    if (!trace) return 0;
    const char* const kernel = "{\"kind\":\"kernel\",\"name\":\"k\",\"grid\":[64,1,1],\"block\":[%d,1,1],\"registers\":32,\"static_shared_bytes\":0,"
                               "\"dynamic_shared_bytes\":0,\"local_bytes\":0,\"start_ns\":%d,\"end_ns\":%d,\"stream\":7,\"counters\":{}}\n";
    for (int i = 1; i < 2500000; ++i) fprintf(trace, kernel, i == 1000 ? 4096 : 128, i * 10, i * 10 + 5);
    fflush(trace);
}
