// Threads still write zeros over the output when the program ends.
// expect: passed | wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    const std::string path = argv[2];
    const size_t size = shape_of(argv[1]).count() * 4;
    for (int i = 0; i < 8; ++i)
        std::thread([path, size] {
            const std::string zeros(size, 0);
            for (;;) {
                const int fd = open(path.c_str(), O_WRONLY);
                if (write(fd, zeros.data(), size) < 0) usleep(1);
                close(fd);
            }
        }).detach();
    return 0;
}
