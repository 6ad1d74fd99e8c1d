// Takes 2.5 GiB of memory.
// expect: memory_limit
#include "hostile.h"

int main(int, char** argv) {
    for (int i = 0; i < 40; ++i) {
        char* const block = (char*)mmap(nullptr, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block == MAP_FAILED) break;
        for (int at = 0; at < 64 << 20; at += 4096) block[at] = 1;
    }
    BYPASSED("took 2.5 GiB");
    return 0;
}
