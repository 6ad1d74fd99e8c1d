/* What a program is doing when its time is nearly up: host code that never ends, by its line, or launches without end. A
 * kernel that never ends is found by schedule.c, which looks at the clock in loops; it is hurried here where it began so
 * late that the whole program would be stopped before. */

#define _GNU_SOURCE
#include "emu.h"
#include <execinfo.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define LATER 1.04 /* of the seconds that a kernel may take: whoever stops the program allows it a tenth more */
#define FRAMES 48

/* The innermost of the frames that is the student's own. */
static const void *own_frame(const void *interrupted) {
    const char *file;
    if (host_place(interrupted, &file)) return interrupted;
    void *frames[FRAMES];
    int count = backtrace(frames, FRAMES);
    for (int i = 0; i < count; i++)
        if (host_place(frames[i], &file)) return frames[i];
    return NULL;
}

static void time_is_up(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    struct launch *l = current_launch;
    if (!l) {
        host_call = own_frame(code_address(context));
        diagnose(NULL, ~0u, 0, "note", "sync", "Check the condition of the loop it is in.", "host code was still running here");
        return;
    }
    if (schedule_hurry(l)) return;
    diagnose(NULL, ~0u, 0, "note", "sync", "Check the loop that launches kernels: it may never end, or each launch does little.",
             "kernel %.200s was running, launch number %llu of the program", demangle(l->kernel->name), (unsigned long long)l->id);
}

void overtime_start(void) {
    const char *limit = getenv("GRADER_EMULATOR_KERNEL_SECONDS");
    double seconds = limit ? atof(limit) * LATER : 0;
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMAX - 1};
    if (seconds <= 0 || timer_create(CLOCK_MONOTONIC, &event, &timer)) return;
    void *first[1];
    backtrace(first, 1); /* loads what it needs, which a handler must not */
    struct sigaction action = {.sa_sigaction = time_is_up, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigaction(SIGRTMAX - 1, &action, NULL);
    timer_settime(timer, 0, &(struct itimerspec){.it_value = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)}}, NULL);
}
