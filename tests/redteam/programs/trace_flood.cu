// Writes 64 million empty lines where the trace goes, to keep the grader reading for hours.
// expect: passed; flagged
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    const char* const where = getenv("GRADER_TRACE");
    const int fd = where && !strncmp(where, "fd:", 3) ? atoi(where + 3) : -1;
    const std::string lines(1 << 20, '\n');
    for (int i = 0; i < 64; ++i)
        if (write(fd, lines.data(), lines.size()) < 0) break;
    return 0;
}
