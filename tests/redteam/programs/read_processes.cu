// Looks at the grader through /proc: its command line, folder, files, memory map.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    for (int pid = 1; pid < 1 << 16; ++pid) {
        const std::string base = "/proc/" + std::to_string(pid);
        if (access(base.c_str(), F_OK) != 0) continue;
        char target[4096];
        for (const char* name : {"/cwd/redteam-canary/secret", "/root/tmp/redteam-canary/secret"})
            if (!contents(base + name).empty()) BYPASSED("%s%s", base.c_str(), name);
        for (int fd = 0; fd < 64; ++fd) {
            const ssize_t size = readlink((base + "/fd/" + std::to_string(fd)).c_str(), target, sizeof target - 1);
            if (size > 0 && (target[size] = 0, strstr(target, "redteam-canary"))) BYPASSED("fd %d of %d", fd, pid);
        }
        if (contents(base + "/maps").find("python") != std::string::npos) BYPASSED("memory map of %d", pid);
    }
    write_zeros(argv[1], argv[2]);
    return 0;
}
