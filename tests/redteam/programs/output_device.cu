// The output is a device that gives zeros for ever.
// expect: no_output
#include "hostile.h"
#include <sys/sysmacros.h>

int main(int, char** argv) {
    if (mknod(argv[2], S_IFCHR | 0666, makedev(1, 5)) == 0) BYPASSED("made a device");
    symlink("/dev/zero", argv[2]);
    return 0;
}
