// Leaves two thousand files that are large and empty: 20 MB of length each, no disk.
// expect: passed | runtime_error
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    for (int i = 0; i < 2000; ++i) {
        const int fd = open(("sparse" + std::to_string(i)).c_str(), O_WRONLY | O_CREAT, 0600);
        if (ftruncate(fd, 20 << 20) != 0) break;
        close(fd);
    }
}
