// Looks at the machine through process 1: its root folder, memory, descriptors, environment.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    if (!contents("/proc/1/root/tmp/redteam-canary/secret").empty()) BYPASSED("read the secret through process 1");
    if (contents("/proc/1/environ").find("CANARY") != std::string::npos) BYPASSED("process 1 has the secret");
    for (int fd = 0; fd < 64; ++fd) {
        const std::string path = "/proc/1/fd/" + std::to_string(fd);
        struct stat facts;
        if (stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) continue;    // a pipe would keep us waiting
        if (contents(path).find("CANARY") != std::string::npos) BYPASSED("%s holds a canary", path.c_str());
    }
    const int folder = open("/proc/1/cwd", O_RDONLY | O_DIRECTORY);
    if (folder >= 0 && openat(folder, "submissions/alice/hw4.cu", O_RDONLY) >= 0) BYPASSED("reached another student's work");
    write_zeros(argv[1], argv[2]);
}
