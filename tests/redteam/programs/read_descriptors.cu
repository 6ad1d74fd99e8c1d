// Reads from whatever descriptors it inherited.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    for (int fd = 3; fd < 1024; ++fd) {
        struct stat facts;
        if (fstat(fd, &facts) != 0) continue;
        if (S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode)) BYPASSED("descriptor %d is a file or folder", fd);
        char byte;
        const int again = open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDONLY | O_NONBLOCK);
        if (again >= 0 && read(again, &byte, 1) > 0) BYPASSED("descriptor %d can be read", fd);
        if (recv(fd, &byte, 1, MSG_DONTWAIT) > 0) BYPASSED("descriptor %d gives data", fd);
    }
    write_zeros(argv[1], argv[2]);
    return 0;
}
