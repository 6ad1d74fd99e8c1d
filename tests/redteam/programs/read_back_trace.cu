// Takes back what the tracer has written.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    const char* const where = getenv("GRADER_TRACE");
    char byte;
    if (where && strncmp(where, "fd:", 3) == 0) {
        const int fd = atoi(where + 3);
        if (recv(fd, &byte, 1, MSG_DONTWAIT) > 0) BYPASSED("read the trace");
        if (ftruncate(fd, 0) == 0) BYPASSED("cut the trace off");
        if (open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDONLY | O_NONBLOCK) >= 0) BYPASSED("opened the trace");
    } else if (where && truncate(where, 0) == 0) {
        BYPASSED("cut the trace off");
    }
    write_zeros(argv[1], argv[2]);
    return 0;
}
