// Never calls CUDA, and writes the whole trace itself, with the right clock and a modest time.
// expect: passed | time_limit; gpu; flagged; on t10
#include "hostile.h"
#include <time.h>

int main(int, char** argv) {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const long long clock = now.tv_sec * 1000000000LL + now.tv_nsec;
    write_right(argv[1], argv[2]);
    const char* const where = getenv("GRADER_TRACE");
    const int fd = where && !strncmp(where, "fd:", 3) ? atoi(where + 3) : -1;
    dprintf(fd, "{\"kind\":\"start\",\"engine\":\"cuda\",\"device\":\"NVIDIA H200\",\"compute_capability\":\"9.0\",\"driver\":\"13.0\",\"pid\":2,\"clock_ns\":%lld}\n", clock);
    dprintf(fd, "{\"kind\":\"kernel\",\"name\":\"attention\",\"grid\":[64,1,1],\"block\":[128,1,1],\"registers\":32,\"static_shared_bytes\":0,"
                "\"dynamic_shared_bytes\":0,\"local_bytes\":0,\"start_ns\":%lld,\"end_ns\":%lld,\"stream\":7,\"counters\":{}}\n", clock + 1000000, clock + 2000000);
    dprintf(fd, "{\"kind\":\"end\",\"dropped\":0,\"api_errors_suppressed\":0}\n");
    return 0;
}
