// Opens the kernel's settings for writing: the name of the core dump handler among them.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    for (const char* path : {"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory",
                             "/proc/sysrq-trigger", "/proc/sys/kernel/hostname", "/sys/kernel/uevent_helper",
                             "/proc/sys/fs/binfmt_misc/register",
                             "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/pids/cgroup.procs"})
        if (open(path, O_WRONLY) >= 0) BYPASSED("opened %s", path);
    const int map = open("/proc/self/uid_map", O_WRONLY);    // one's own file can be opened; writing is what counts
    if (map >= 0 && write(map, "0 0 1\n", 6) > 0) BYPASSED("wrote a user map");
    if (sethostname("mine", 4) == 0) BYPASSED("changed the host's name");
    write_zeros(argv[1], argv[2]);
    return 0;
}
