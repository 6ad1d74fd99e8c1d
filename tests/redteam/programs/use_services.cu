// Talks to the machine's services through sockets that are files: a container engine, systemd, an agent with keys.
// expect: wrong_answer
#include "hostile.h"

static bool reaches(const std::string& path, int type) {
    sockaddr_un address = {AF_UNIX, {}};
    strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    const int fd = socket(AF_UNIX, type, 0);
    const bool reached = fd >= 0 && connect(fd, (sockaddr*)&address, sizeof address) == 0;
    close(fd);
    return reached;
}

int main(int, char** argv) {
    std::vector<std::string> paths = {"/tmp/redteam-canary/socket"};
    const std::string all = contents("/proc/net/unix");
    for (size_t at = all.find(" /"); at != std::string::npos; at = all.find(" /", at + 1))
        paths.push_back(all.substr(at + 1, all.find('\n', at) - at - 1));
    for (const std::string& path : paths)
        for (const int type : {SOCK_STREAM, SOCK_SEQPACKET})
            if (reaches(path, type)) BYPASSED("connected to %s", path.c_str());
    write_zeros(argv[1], argv[2]);
}
