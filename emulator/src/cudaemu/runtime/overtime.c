/* Reports what a program is doing when its time is nearly up: the line of host code that never ends, or endless
 * launches. schedule.c, which checks the clock in loops, finds a kernel that never ends. If the kernel started so late
 * that the whole program would be stopped first, this file makes schedule.c stop it earlier.
 *
 * A thread sleeps until then, and then interrupts the program's first thread. The signal handler only records the position,
 * because the program may be inside malloc; the sleeping thread then writes the report.
 *
 * GRADER_EMULATOR_KERNEL_SECONDS is wall time, or processor time of the process if it ends with "cpu". */

#define _GNU_SOURCE
#include "emu.h"
#include <errno.h>
#include <execinfo.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define FRAMES 48
#define INTERRUPT (SIGRTMAX - 1)

static pthread_t program;
static sem_t noted;
static struct {
    void *frames[FRAMES + 1]; /* the position, and the return addresses below it */
    int count, hurried;
    const struct kernel_info *kernel; /* the one that runs, or NULL */
    const void *last_call; /* the host's latest call of the runtime */
    u64 launch;
} seen;

static void note(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    struct launch *l = launches_under_way;
    seen.last_call = host_call;
    if (l) {
        seen.kernel = l->kernel, seen.launch = l->id;
        seen.hurried = schedule_hurry(l);
    } else {
        void *frames[FRAMES];
        int count = backtrace(frames, FRAMES);
        seen.frames[seen.count++] = (void *)code_address(context);
        for (int i = 0; i < count; i++) seen.frames[seen.count++] = frames[i];
    }
    sem_post(&noted);
}

static void *wait_for_it(void *argument) {
    double seconds = *(double *)argument;
    struct timespec rest = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (clock_nanosleep(limit_clock, 0, &rest, &rest) == EINTR) {}
    if (pthread_kill(program, INTERRUPT)) return NULL;
    while (sem_wait(&noted)) {}
    if (seen.hurried || sticky_error == cudaErrorLaunchTimeout || pending_fault == cudaErrorLaunchTimeout) return NULL; /* a kernel is, or was just now */
    char here[400] = "", last[400];
    if (!seen.kernel && (is_in_program(seen.frames[0]) || !seen.last_call)) place_facts("host", (const void *const *)seen.frames, seen.count, here, sizeof here);
    host_call = *here ? NULL : seen.last_call;
    if (seen.kernel)
        finding(NULL, ~0u, 0, "sync", "launches_endless", "launched:%s\nlaunch=%llu", demangle(seen.kernel->name), (unsigned long long)seen.launch);
    else
        finding(NULL, ~0u, 0, "sync", "host_endless", "%s\n%s", here, *here ? place_facts("last", &seen.last_call, 1, last, sizeof last) : "last:call");
    return NULL;
}

void overtime_start(void) {
    static double seconds;
    const char *limit = getenv("GRADER_EMULATOR_KERNEL_SECONDS");
    seconds = limit ? atof(limit) : 0;
    if (limit && strstr(limit, "cpu")) limit_clock = CLOCK_PROCESS_CPUTIME_ID;
    if (seconds <= 0) return;
    program = pthread_self();
    sem_init(&noted, 0, 0);
    void *first[1];
    backtrace(first, 1); /* the first call loads a library, which a signal handler must not do */
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigaction(INTERRUPT, &action, NULL);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* the new thread inherits the mask, so only the program's own threads get its signals */
    pthread_t watch;
    if (!pthread_create(&watch, NULL, wait_for_it, &seconds)) {
        pthread_detach(watch);
        __atomic_add_fetch(&own_threads, 1, __ATOMIC_SEQ_CST); /* it may end, but then the time is up */
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
