/* The start and the end of a program, and the handling of crashes. */

#define _GNU_SOURCE
#include "emu.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Work that still runs when the program ends may have faults to report. */
static void finish_work(void) { work_wait(NULL, 0); }

static void finish(void) {
    values_finish();
    counters_finish();
    memory_report_leaks();
    u64 again = findings_repeated();
    if (again) fprintf(stderr, "(%llu further findings at the places named above)\n", (unsigned long long)again);
    trace_line("{\"kind\":\"end\",\"dropped\":0,\"computed_floats\":%d}", computed_floats);
}

/* ---- crashes ------------------------------------------------------------------------------------------------------------ */

/* Who is at fault for a crash depends on where it happens. In host code it is the student. In a kernel it is the
 * emulator, because the emulator finds a kernel's mistakes before they can crash it, except for a stack that is too
 * small for the kernel's calls and for registered host memory that was unmapped. */

/* Whether an address is just beyond the end of the stack of the warp that runs here. */
static int is_behind_stack(u64 address) {
    const struct fiber *f = this_worker->running;
    return f && (u64)f->stack - address - 1 < GUARD_BYTES;
}

static const char *signal_name(int number) {
    return number == SIGSEGV ? "SIGSEGV" : number == SIGBUS ? "SIGBUS" : number == SIGILL ? "SIGILL" : number == SIGFPE ? "SIGFPE" : "SIGTRAP";
}

static void emulator_failed(int signal_number, const struct launch *l) {
    finding(NULL, ~0u, 0, "emulator", "emulator_failed", "signal:%s\nlaunched:%s", signal_name(signal_number), demangle(l->kernel->name));
}

static void crashed(int signal_number, siginfo_t *info, void *context) {
    u64 address = (u64)info->si_addr;
    if (info->si_code > 0 && signal_number == SIGSEGV && guard_fault(address)) return;
    static int taken;
    static __thread int again;
    while (!again && __atomic_exchange_n(&taken, 1, __ATOMIC_SEQ_CST)) pause(); /* another thread crashed before and will end the program */
    if (again) { /* crashed while reporting */
        signal(signal_number, SIG_DFL);
        raise(signal_number);
        return;
    }
    again = 1;
    host_call = this_worker ? NULL : code_address(context);
    struct launch *l = this_worker ? this_worker->launch : NULL;
    int memory = signal_number == SIGSEGV || signal_number == SIGBUS;
    struct allocation *a = memory && l ? memory_find(address) : NULL;
    if (info->si_code <= 0) { /* a process sent the signal */
    } else if (l && memory && is_behind_stack(address))
        finding(NULL, ~0u, 0, "memory", "stack_overflow", "launched:%s", demangle(l->kernel->name));
    else if (a && a->kind == MEMORY_REGISTERED)
        finding(NULL, ~0u, 0, "memory", "registered_unmapped", "launched:%s", demangle(l->kernel->name));
    else if (l)
        emulator_failed(signal_number, l);
    else if (memory) {
        if (memory_is_arena(address)) {
            char text[512];
            memory_facts(address, text, sizeof text);
            finding(NULL, ~0u, 0, "memory", "host_dereference", "%s", text);
        } else if (trace_enabled() || getenv("GRADER_EMULATOR_VERBOSE"))
            finding(NULL, ~0u, 0, "memory", "host_crash", "address:0x%llx", (unsigned long long)address);
    }
    finish();
    signal(signal_number, SIG_DFL); /* not earlier, or the next thread to crash would cut the report short */
    raise(signal_number);
}

static void stopped(int signal_number) {
    struct launch *l = launches_under_way;
    if (l) {
        static const char text[] = "emulator: stopped while a kernel was running\n";
        if (write(2, text, sizeof text - 1) < 0) _exit(124);
        host_call = NULL;
        finding(NULL, ~0u, 0, "sync", "kernel_stopped", "launched:%s", demangle(l->kernel->name));
    }
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

__attribute__((constructor(102))) static void begin(void) {
    trace_open();
    atexit(finish); /* atexit calls the last registered function first */
    atexit(finish_work);
    at_quick_exit(finish);
    at_quick_exit(finish_work);
    u8 *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = 65536}, NULL);
    struct sigaction crash = {.sa_sigaction = crashed, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) sigaction(crashes[i], &crash, NULL);
    signal(SIGTERM, stopped);
    overtime_start();
    guard_start();
    values_start();
}
