// Installs a seccomp filter of its own that makes every write to the trace fail.
// expect: passed | time_limit; flagged
#include "hostile.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
__global__ void kernel() {}

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    sock_filter code[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 3, 0, SYS_write},
        {BPF_JMP | BPF_JEQ | BPF_K, 2, 0, SYS_sendto},
        {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_writev},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, args)},
        {BPF_JMP | BPF_JGE | BPF_K, 0, 1, 3},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EBADF},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    sock_fprog program = {sizeof code / sizeof *code, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) _exit(0);
    kernel<<<1, 1>>>();
    cudaDeviceSynchronize();
}
