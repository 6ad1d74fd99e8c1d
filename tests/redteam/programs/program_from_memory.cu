// Executes a program that has no name: a copy of itself in memory, in which it looks for what it could not see before.
// expect: wrong_answer | runtime_error
#include "hostile.h"

int main(int, char** argv) {
    if (!getenv("FROM_MEMORY")) {
        const std::string self = contents("/proc/self/exe", 1 << 28);
        const int fd = memfd_create("program", 0);
        if (write(fd, self.data(), self.size()) == (ssize_t)self.size()) {
            setenv("FROM_MEMORY", "1", 1);
            fexecve(fd, argv, environ);
        }
    }
    if (!contents("/tmp/redteam-canary/secret").empty()) BYPASSED("read the secret from a program in memory");
    write_zeros(argv[1], argv[2]);
}
