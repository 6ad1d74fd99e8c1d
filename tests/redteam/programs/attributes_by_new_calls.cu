// Leaves an attribute and a flag at files of the system and of the user, by calls that came with Linux 6.13 and 6.17.
// expect: passed; flagged
#include "hostile.h"

#include <sys/syscall.h>

int main(int argc, char** argv) {
    write_right(argv[1], argv[2]);
    constexpr int kSetAttribute = 463, kRemoveAttribute = 466, kGetFlags = 468, kSetFlags = 469;
    struct { uint64_t value; uint32_t size, flags; } attribute = {reinterpret_cast<uint64_t>("ran"), 3, 0};
    struct { uint64_t flags; uint32_t sizes[4]; } flags;
    for (const char* const file : {"/usr/bin/env", "/bin/sh", "/usr", "/", static_cast<const char*>(argv[1])}) {
        if (syscall(kSetAttribute, AT_FDCWD, file, 0, "user.redteam", &attribute, sizeof attribute) == 0) {
            BYPASSED("an attribute of %s", file);
            syscall(kRemoveAttribute, AT_FDCWD, file, 0, "user.redteam");
        }
        memset(&flags, 0, sizeof flags);
        if (syscall(kGetFlags, AT_FDCWD, file, &flags, sizeof flags, 0) == 0 &&
            syscall(kSetFlags, AT_FDCWD, file, &flags, sizeof flags, 0) == 0)
            BYPASSED("the flags of %s", file);
    }
    return argc == 0;
}
