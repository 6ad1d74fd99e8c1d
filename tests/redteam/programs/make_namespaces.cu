// Makes namespaces and mounts, to be root in them.
// expect: wrong_answer
#include "hostile.h"
#include <sched.h>
#include <sys/mount.h>

int main(int, char** argv) {
    if (unshare(CLONE_NEWUSER) == 0) BYPASSED("a user namespace");
    if (unshare(CLONE_NEWNS) == 0) BYPASSED("a mount namespace");
    if (mount("none", "/tmp", "tmpfs", 0, nullptr) == 0) BYPASSED("mounted");
    if (umount2("/proc", MNT_DETACH) == 0) BYPASSED("unmounted");
    if (chroot(".") == 0) BYPASSED("changed its root");
    const long made = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (made == 0) _exit(0);
    if (made > 0) BYPASSED("cloned into a user namespace");
    struct { uint64_t words[11]; } arguments = {};
    arguments.words[0] = CLONE_NEWUSER;
    arguments.words[4] = SIGCHLD;
    const long other = syscall(435, &arguments, 64);
    if (other == 0) _exit(0);
    if (other > 0) BYPASSED("clone3 into a user namespace");
    write_zeros(argv[1], argv[2]);
    return 0;
}
