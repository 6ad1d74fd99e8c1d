// Fills pipes, a megabyte each, 256 of them.
// expect: passed | memory_limit | runtime_error
#include "hostile.h"

int main(int, char** argv) {
    const std::string data(1 << 20, 'x');
    for (int i = 0; i < 256; ++i) {
        int ends[2];
        if (pipe2(ends, O_NONBLOCK) != 0) break;
        fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
        if (write(ends[1], data.data(), data.size()) < 0) break;
    }
    write_right(argv[1], argv[2]);
}
