// Starts processes by fork, vfork, clone, clone3, posix_spawn, system and popen: each could use the GPU untraced.
// expect: wrong_answer
#include "hostile.h"
#include <linux/sched.h>
#include <sched.h>
#include <spawn.h>

static int nothing(void*) { return 0; }

int main(int, char** argv) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    if (child > 0) BYPASSED("fork");
    static char stack[1 << 16];
    if (clone(nothing, stack + sizeof stack, SIGCHLD, nullptr) > 0) BYPASSED("clone");
    if (clone(nothing, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, nullptr) > 0) BYPASSED("clone as vfork does");
    clone_args arguments = {};
    arguments.exit_signal = SIGCHLD;
    child = syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child == 0) _exit(0);
    if (child > 0) BYPASSED("clone3");
    char* words[] = {(char*)"/bin/true", nullptr};
    if (posix_spawn(&child, words[0], nullptr, nullptr, words, environ) == 0) BYPASSED("posix_spawn");
    if (system("true") == 0) BYPASSED("system");
    if (FILE* const pipe = popen("echo x", "r"))
        if (fgetc(pipe) == 'x') BYPASSED("popen");
    write_zeros(argv[1], argv[2]);
}
