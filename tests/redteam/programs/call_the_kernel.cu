// Makes system calls that have no place in homework.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    const struct { const char* name; long number; } calls[] = {
        {"bpf", SYS_bpf}, {"perf_event_open", SYS_perf_event_open}, {"userfaultfd", SYS_userfaultfd},
        {"io_uring_setup", 425}, {"keyctl", SYS_keyctl}, {"add_key", SYS_add_key}, {"kexec_load", SYS_kexec_load},
        {"init_module", SYS_init_module}, {"open_by_handle_at", SYS_open_by_handle_at}, {"quotactl", SYS_quotactl}};
    for (const auto& call : calls) {
        char space[256] = {};
        errno = 0;
        if (syscall(call.number, space, space, sizeof space, 0, 0) >= 0 || (errno != EPERM && errno != ENOSYS))
            BYPASSED("%s: %s", call.name, strerror(errno));
    }
#ifdef __x86_64__
    if (syscall(SYS_arch_prctl, 0x1023, 18) >= 0 || errno != EPERM) BYPASSED("AMX: %s", strerror(errno));
#endif
    write_zeros(argv[1], argv[2]);
    return 0;
}
