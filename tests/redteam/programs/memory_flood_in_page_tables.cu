// Takes 1.5 GiB of memory in page tables: one byte is read in every 2 MiB of a terabyte, all the same page of zeros.
// expect: memory_limit | time_limit
#include "hostile.h"

int main(int, char** argv) {
    const size_t step = 2 << 20, count = 393216;
    char* const space = (char*)mmap(nullptr, step * count, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) return 1;
    madvise(space, step * count, MADV_NOHUGEPAGE);
    long sum = 0;
    for (size_t i = 0; i < count; ++i) sum += *(volatile char*)(space + i * step);
    sleep(2);
    if (sum == 0) write_right(argv[1], argv[2]);
}
