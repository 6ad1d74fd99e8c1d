// Opens disks, memory and the kernel's log.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    for (const char* name : {"/dev/sda", "/dev/vda", "/dev/nvme0n1", "/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg",
                             "/proc/kcore", "/proc/kmsg", "/dev/fuse", "/dev/kvm", "/dev/net/tun", "/dev/loop-control"})
        if (open(name, O_RDONLY | O_NONBLOCK) >= 0) BYPASSED("opened %s", name);
    write_zeros(argv[1], argv[2]);
    return 0;
}
