// Makes system calls by the numbers of 32-bit programs, which a filter of 64-bit numbers might let pass.
// expect: runtime_error | no_output
#include "hostile.h"

int main(int, char** argv) {
    long result = -1;
#ifdef __x86_64__
    asm volatile("int $0x80" : "=a"(result) : "a"(26L), "b"(0L), "c"(0L), "d"(0L), "S"(0L) : "memory");    // ptrace
    BYPASSED("a 32-bit call gave %ld", result);
#else
    abort();
#endif
    write_zeros(argv[1], argv[2]);
}
