// Fills /tmp and /dev/shm, which are memory.
// expect: passed | memory_limit | runtime_error
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    std::vector<char> block(1 << 20, 'x');
    for (const char* path : {"/tmp/redteam-flood", "/dev/shm/redteam-flood"}) {
        const int file = open(path, O_CREAT | O_WRONLY, 0666);
        int written = 0;
        while (file >= 0 && written < 380 && write(file, block.data(), block.size()) == ssize_t(block.size())) ++written;
        if (written >= 380) BYPASSED("%d MB in %s", written, path);
        unlink(path);
    }
    return 0;
}
