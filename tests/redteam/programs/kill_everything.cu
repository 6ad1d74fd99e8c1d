// Kills every process that it may.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    const pid_t child = fork();
    if (child == 0) { kill(1, SIGKILL); kill(getppid(), 0); for (int pid = 2; pid < 5000; ++pid) if (pid != getpid() && pid != getppid()) kill(pid, SIGKILL); _exit(0); }
    waitpid(child, nullptr, 0);
    write_zeros(argv[1], argv[2]);
    return 0;
}
