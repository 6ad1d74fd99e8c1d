// Passes, with thousands of long findings in its trace, which become warnings.
// expect: passed; flagged
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    const char* const where = getenv("GRADER_TRACE");
    const int fd = where ? atoi(where + 3) : -1;
    for (int i = 0; i < 6000; ++i)
        dprintf(fd, "{\"kind\":\"finding\",\"is\":\"past_the_end\",\"facts\":{\"did\":\"%04000d\"}}\n", i);
}
