// Changes the priority, the scheduler and the processors of other processes.
// expect: wrong_answer
#include "hostile.h"
#include <sched.h>

int main(int, char** argv) {
    for (const int pid : other_processes()) {
        const std::string name = contents("/proc/" + std::to_string(pid) + "/comm", 40);
        cpu_set_t processors;
        sched_param none = {0};
        errno = 0;
        const int nice = getpriority(PRIO_PROCESS, pid);    // everything stays as it is
        bool changed = errno == 0 && setpriority(PRIO_PROCESS, pid, nice) == 0;
        changed |= sched_getaffinity(pid, sizeof processors, &processors) == 0 && sched_setaffinity(pid, sizeof processors, &processors) == 0;
        changed |= sched_getscheduler(pid) == SCHED_OTHER && sched_setscheduler(pid, SCHED_OTHER, &none) == 0;
        const long io = syscall(SYS_ioprio_get, 1, pid);
        changed |= io >= 0 && syscall(SYS_ioprio_set, 1, pid, io) == 0;
        if (changed) {
            BYPASSED("rules over process %d, %s", pid, name.c_str());
            break;
        }
    }
    write_zeros(argv[1], argv[2]);
}
