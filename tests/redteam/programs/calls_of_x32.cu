// Makes system calls by the numbers of the x32 ABI.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
#ifdef __x86_64__
    for (const long number : {521L /* ptrace */, 57L /* fork */, 101L, 165L /* mount */, 272L /* unshare */, 298L /* perf */}) {
        errno = 0;
        if (syscall(0x40000000 | number, 0, 0, 0, 0, 0) >= 0 || errno != ENOSYS) BYPASSED("x32 call %ld: %s", number, strerror(errno));
    }
#endif
    write_zeros(argv[1], argv[2]);
}
