// Takes 2.5 GiB of memory.
// expect: memory_limit
#include "hostile.h"

int main(int, char** argv) {
    for (int i = 0; i < 40; ++i) {
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
        if (mmap(nullptr, 64 << 20, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED) break;
    }
    BYPASSED("took 2.5 GiB");
    return 0;
}
