// Raises the limit of core dumps and crashes, to leave a gigabyte where the kernel puts them.
// expect: runtime_error | no_output
#include "hostile.h"

int main() {
    const rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(RLIMIT_CORE, &all) == 0) BYPASSED("core dumps are unlimited");
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    char* const space = (char*)mmap(nullptr, 300 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(space, 1, 300 << 20);
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    abort();
}
