// Leaves a file in every place it can write to, for its next run.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    for (const char* place : {"/tmp", "/dev/shm", "/var/tmp", "/run", "/", "/dev", "/etc", "/usr/lib", ".", ".."}) {
        const std::string path = std::string(place) + "/redteam-cache";
        if (access(path.c_str(), F_OK) == 0) BYPASSED("%s is still here", path.c_str());
        close(open(path.c_str(), O_CREAT | O_WRONLY, 0666));
    }
    if (const char* home = getenv("HOME")) {
        const std::string path = std::string(home) + "/.redteam-cache";
        if (access(path.c_str(), F_OK) == 0) BYPASSED("%s is still here", path.c_str());
        close(open(path.c_str(), O_CREAT | O_WRONLY, 0666));
    }
    write_zeros(argv[1], argv[2]);
    return 0;
}
