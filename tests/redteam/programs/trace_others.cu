// Attaches to other processes and reads their memory.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    char byte;
    iovec mine = {&byte, 1}, theirs = {(void*)0x400000, 1};
    const pid_t child = fork();
    if (child == 0) { sleep(5); _exit(0); }
    for (const pid_t pid : {pid_t(1), getppid(), child}) {
        if (ptrace(PTRACE_ATTACH, pid, 0, 0) == 0) BYPASSED("attached to %d", pid);
        if (process_vm_readv(pid, &mine, 1, &theirs, 1, 0) > 0) BYPASSED("read memory of %d", pid);
    }
    kill(child, SIGKILL);
    write_zeros(argv[1], argv[2]);
    return 0;
}
