// Kills every process that it may.
// expect: wrong_answer
#include "hostile.h"

// kill(2) takes the id of any thread for its process: those of the parent, of which the emulator and CUDA start some, are
// spared, so that it lives to write its output.
static bool is_own(pid_t pid) {
    const std::string thread = "/proc/" + std::to_string(getppid()) + "/task/" + std::to_string(pid);
    return pid == getpid() || access(thread.c_str(), F_OK) == 0;
}

int main(int, char** argv) {
    const pid_t child = fork();
    if (child == 0) {
        kill(1, SIGKILL);
        kill(getppid(), 0);
        for (pid_t pid = 2; pid < 5000; ++pid)
            if (!is_own(pid)) kill(pid, SIGKILL);
        _exit(0);
    }
    waitpid(child, nullptr, 0);
    write_zeros(argv[1], argv[2]);
    return 0;
}
