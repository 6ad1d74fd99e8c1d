// Says what it knows through every text and number of its trace, its exit code and stdout, on a test of which only the verdict may be read.
// expect: passed; flagged; on t01; verdict only
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    printf("CANARY 647483\n");
    fflush(stdout);
    const char* const where = getenv("GRADER_TRACE");
    const int fd = where ? atoi(where + 3) : -1;
    dprintf(fd, "{\"kind\":\"start\",\"engine\":\"CANARY\",\"device\":\"CANARY\",\"compute_capability\":\"CANARY\",\"driver\":\"CANARY\",\"clock_ns\":647483}\n");
    dprintf(fd, "{\"kind\":\"tracer_error\",\"call\":\"CANARY\",\"message\":\"CANARY\"}\n");
    dprintf(fd, "{\"kind\":\"api_error\",\"function\":\"CANARY\",\"code\":647483,\"name\":\"CANARY\"}\n");
    for (int i = 0; i < 100; ++i)
        dprintf(fd, "{\"kind\":\"diagnostic\",\"severity\":\"error\",\"tool\":\"memory\",\"message\":\"CANARY %d %01000d\"}\n", i, 7);
    dprintf(fd, "{\"kind\":\"kernel\",\"name\":\"CANARY\",\"grid\":[1,1,1],\"block\":[647483,1,1],\"registers\":32,\"static_shared_bytes\":0,"
                "\"dynamic_shared_bytes\":0,\"local_bytes\":0,\"start_ns\":2000,\"end_ns\":3000,\"stream\":7,\"counters\":{}}\n");
    dprintf(fd, "{\"kind\":\"end\",\"dropped\":647483,\"api_errors_suppressed\":0}\n");
    _exit(64);
}
