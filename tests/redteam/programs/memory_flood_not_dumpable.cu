// Takes 2.5 GiB of memory in files without a name, and makes its descriptors invisible to other processes.
// expect: memory_limit
#include "hostile.h"

int main(int, char** argv) {
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    const std::string data(32 << 20, 'x');
    for (int i = 0; i < 80; ++i) {
        const int fd = memfd_create("hidden", 0);
        if (write(fd, data.data(), data.size()) < 0) break;
    }
    sleep(1);
    write_right(argv[1], argv[2]);
}
