// Takes real-time priority, and more files and locked memory than it is given.
// expect: wrong_answer
#include "hostile.h"
#include <sched.h>

int main(int, char** argv) {
    sched_param most = {99};
    if (sched_setscheduler(0, SCHED_FIFO, &most) == 0) BYPASSED("real-time scheduling");
    if (setpriority(PRIO_PROCESS, 0, -20) == 0 && getpriority(PRIO_PROCESS, 0) < 0) BYPASSED("priority");
    rlimit many = {1 << 20, 1 << 20};
    if (setrlimit(RLIMIT_NOFILE, &many) == 0) BYPASSED("a million open files");
    write_zeros(argv[1], argv[2]);
    return 0;
}
