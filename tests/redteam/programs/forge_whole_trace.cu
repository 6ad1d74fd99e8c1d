// Never calls CUDA, and writes the whole trace itself, with the right clock and a modest time.
// expect: passed | time_limit; gpu; flagged; on t10
#include "hostile_attention.h"

int main(int, char** argv) {
    const long long clock = realtime_ns();
    write_right(argv[1], argv[2]);
    const char* const where = getenv("GRADER_TRACE");
    write_trace(where && !strncmp(where, "fd:", 3) ? atoi(where + 3) : -1, clock, 1000000);
    return 0;
}
