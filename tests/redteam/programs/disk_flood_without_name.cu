// Writes 400 MB into files of its own folder that have no name any more.
// expect: runtime_error
#include "hostile.h"

int main(int, char** argv) {
    const std::vector<char> block(1 << 20, 7);
    for (int file = 0; file < 8; ++file) {
        const int fd = open(".", O_TMPFILE | O_RDWR, 0600);
        const int other = fd >= 0 ? fd : open("flood", O_CREAT | O_RDWR, 0600);
        if (fd < 0) unlink("flood");
        for (int i = 0; i < 50; ++i) if (write(other, block.data(), block.size()) < 0) break;
    }
    write_right(argv[1], argv[2]);
    sleep(1);
    return 0;
}
