// Writes a trace of its own, beside the tracer's where there is one.
// expect: passed; flagged
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    const char* const where = getenv("GRADER_TRACE");
    const int fd = where && !strncmp(where, "fd:", 3) ? atoi(where + 3) : where ? open(where, O_WRONLY | O_TRUNC) : -1;
    dprintf(fd, "{\"kind\":\"start\",\"engine\":\"cuda\",\"device\":\"mine\",\"compute_capability\":\"9.0\",\"driver\":\"13.0\",\"pid\":2,\"clock_ns\":1000}\n");
    dprintf(fd, "{\"kind\":\"kernel\",\"name\":\"attention\",\"grid\":[64,1,1],\"block\":[128,1,1],\"registers\":32,\"static_shared_bytes\":0,"
                "\"dynamic_shared_bytes\":0,\"local_bytes\":0,\"start_ns\":2000,\"end_ns\":3000,\"stream\":7,\"counters\":{}}\n");
    dprintf(fd, "{\"kind\":\"end\",\"dropped\":0,\"api_errors_suppressed\":0}\n");
    return 0;
}
