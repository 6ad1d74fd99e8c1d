// Takes 2.5 GiB of memory in files that it never maps, so that no process shows them as its own.
// expect: memory_limit
#include "hostile.h"

int main(int, char** argv) {
    const std::vector<char> block(1 << 20, 7);
    std::vector<int> files;
    for (int i = 0; i < 2560; ++i) {
        if (i % 32 == 0) files.push_back(memfd_create("flood", 0));
        if (write(files.back(), block.data(), block.size()) < 0) break;
        if (i % 256 == 255) usleep(100000);
    }
    write_right(argv[1], argv[2]);
    sleep(1);
    return 0;
}
