// Maps the output and ends without a word while it writes to it.
// expect: passed; flagged
#include "hostile.h"

int main(int, char** argv) {
    const std::vector<float> values = right_answer(argv[1]);
    const int fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (ftruncate(fd, values.size() * 4) != 0) return 1;
    void* const mapped = mmap(nullptr, values.size() * 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    memcpy(mapped, values.data(), values.size() * 4);
    _exit(0);
}
