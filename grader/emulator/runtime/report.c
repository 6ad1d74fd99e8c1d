/* The trace, the diagnostics, and what becomes of a crash. */

#define _GNU_SOURCE
#include "emu.h"
#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static int trace_file = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define SHOWN 20 /* paragraphs on stderr; the trace gets a hundred */
#define TRACED 100
static u32 findings;

u64 now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (u64)t.tv_sec * 1000000000ull + (u64)t.tv_nsec;
}

int trace_enabled(void) { return trace_file >= 0; }

void trace_line(const char *format, ...) {
    if (trace_file < 0) return;
    char line[8192];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(line, sizeof line - 1, format, list);
    va_end(list);
    if (n < 0) return;
    if (n > (int)sizeof line - 2) n = (int)sizeof line - 2;
    line[n++] = '\n';
    if (write(trace_file, line, (size_t)n) != n) trace_file = -1; /* one write: lines of several threads never mix */
}

const char *json_string(const char *text, char *buffer, size_t size) {
    size_t n = 0;
    buffer[n++] = '"';
    for (const unsigned char *p = (const unsigned char *)text; *p && n + 8 < size; p++) {
        if (*p == '"' || *p == '\\') buffer[n++] = '\\', buffer[n++] = (char)*p;
        else if (*p < 32) n += (size_t)snprintf(buffer + n, 8, "\\u%04x", *p);
        else buffer[n++] = (char)*p;
    }
    buffer[n++] = '"';
    buffer[n] = 0;
    return buffer;
}

/* From libstdc++, which every CUDA program links. Weak, so that the runtime itself stays C. */
extern char *__cxa_demangle(const char *, char *, size_t *, int *) __attribute__((weak));
const char *demangle(const char *name) {
    static struct { const char *name; char *text; } known[256];
    for (int i = 0; i < 256; i++) {
        if (known[i].name == name) return known[i].text;
        if (!known[i].name) {
            int status = -1;
            char *text = __cxa_demangle ? __cxa_demangle(name, NULL, NULL, &status) : NULL;
            known[i].text = status == 0 ? text : (char *)name;
            known[i].name = name;
            return known[i].text;
        }
    }
    return name;
}

/* What still runs when the program ends may have faults to report. */
static void finish_work(void) { work_wait(NULL, 0); }

static void finish(void) {
    counters_finish();
    memory_report_leaks();
    u64 again = shadow_repeated();
    if (again) fprintf(stderr, "(%llu further findings at the places named above)\n", (unsigned long long)again);
    trace_line("{\"kind\":\"end\",\"dropped\":0}");
}

/* Whether a message goes on where "thread (0,0,0) of block (0,0,0)" ends (grader/sanitizers/cause.py has the same words). */
static int is_what_it_did(const char *message) {
    return strncmp(message, "wrote ", 6) == 0 || strncmp(message, "read ", 5) == 0 || strncmp(message, "updated ", 8) == 0;
}

void diagnose_with(const char *more, struct warp *w, u32 site, u32 lane, const char *severity, const char *tool, const char *advice, const char *format, ...) {
    char text[1024], place[512] = "", kernel[600] = "", a[2100], b[2100], c[1100], d[1100];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    pthread_mutex_lock(&lock);
    u32 n = ++findings;
    const char *file = NULL;
    u32 line = 0, xyz[3] = {0};
    if (w) {
        struct launch *l = w->block->launch;
        const struct module_info *info = l->module->info;
        if (site < info->site_count) line = info->sites[site].line, file = info->files[(u64)info->sites[site].file];
        snprintf(kernel, sizeof kernel, "%s", demangle(l->kernel->name));
        thread_of(w, lane, xyz);
    } else
        line = host_place(host_call, &file);
    if (line) snprintf(place, sizeof place, "%s:%u: ", file, line);
    if (n <= SHOWN) {
        fflush(stdout);
        fprintf(stderr, "%s%s: ", place, severity);
        if (w) {
            fprintf(stderr, "kernel %s, thread (%u,%u,%u) of block (%u,%u,%u)%s ", kernel, xyz[0], xyz[1], xyz[2], w->ctaid[0], w->ctaid[1], w->ctaid[2],
                    is_what_it_did(text) ? "" : ":");
        }
        fprintf(stderr, "%s.%s%s\n", text, advice[0] ? " " : "", advice);
        if (n == SHOWN) fprintf(stderr, "(further findings are counted, not shown)\n");
    }
    if (n <= TRACED) {
        char where[160] = "\"block\":null,\"thread\":null", source[2300] = "\"file\":null,\"line\":null";
        if (w) snprintf(where, sizeof where, "\"block\":[%u,%u,%u],\"thread\":[%u,%u,%u]", w->ctaid[0], w->ctaid[1], w->ctaid[2], xyz[0], xyz[1], xyz[2]);
        if (line) snprintf(source, sizeof source, "\"file\":%s,\"line\":%u", json_string(file, a, sizeof a), line);
        trace_line("{\"kind\":\"diagnostic\",\"severity\":\"%s\",\"tool\":\"%s\",\"message\":%s,\"kernel\":%s,%s,%s,\"advice\":%s%s}", severity, tool,
                   json_string(text, b, sizeof b), w ? json_string(kernel, c, sizeof c) : "null", where, source, json_string(advice, d, sizeof d), more);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- crashes ------------------------------------------------------------------------------------------------------------ */

/* Whose fault a crash is depends on where it happens. Host code is the student's. A kernel is the emulator's: whatever a
 * kernel may do wrong is found before it can crash, but for a stack that is too small for its calls and host memory that was
 * unmapped while it was registered. */

/* Of the instruction behind the one that crashed, as a return address would be; NULL where it is not known how. */
const void *code_address(const void *context) {
#if defined(__x86_64__)
    return (const void *)(((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] + 1);
#elif defined(__aarch64__)
    return (const void *)(((const ucontext_t *)context)->uc_mcontext.pc + 1);
#else
    (void)context;
    return NULL;
#endif
}

/* Whether an address lies behind the end of the stack of the warp that runs here. */
static int is_behind_stack(u64 address) {
    const struct fiber *f = this_worker->running;
    return f && (u64)f->stack - address - 1 < GUARD_BYTES;
}

static const char *signal_name(int number) {
    return number == SIGSEGV ? "SIGSEGV" : number == SIGBUS ? "SIGBUS" : number == SIGILL ? "SIGILL" : number == SIGFPE ? "SIGFPE" : "SIGTRAP";
}

static void emulator_failed(int signal_number, const struct launch *l) {
    static const char advice[] = "Tell the course staff; a GPU runs the program all the same (--engine cuda).";
    char text[2300], message[4700], kernel[1100];
    snprintf(text, sizeof text, "the emulator itself failed with %s in kernel %s: that is a mistake of the grader, not of this program", signal_name(signal_number),
             demangle(l->kernel->name));
    fflush(stdout);
    fprintf(stderr, "error: %s. %s\n", text, advice);
    trace_line("{\"kind\":\"diagnostic\",\"severity\":\"error\",\"tool\":\"emulator\",\"message\":%s,\"kernel\":%s,\"block\":null,\"thread\":null,"
               "\"file\":null,\"line\":null,\"advice\":\"%s\"}",
               json_string(text, message, sizeof message), json_string(demangle(l->kernel->name), kernel, sizeof kernel), advice);
}

static void crashed(int signal_number, siginfo_t *info, void *context) {
    u64 address = (u64)info->si_addr;
    static int taken;
    static __thread int again;
    while (!again && __atomic_exchange_n(&taken, 1, __ATOMIC_SEQ_CST)) pause(); /* another thread, which crashed too, ends the program */
    if (again) { /* while reporting */
        signal(signal_number, SIG_DFL);
        raise(signal_number);
        return;
    }
    again = 1;
    host_call = this_worker ? NULL : code_address(context);
    struct launch *l = this_worker ? this_worker->launch : NULL;
    int memory = signal_number == SIGSEGV || signal_number == SIGBUS;
    struct allocation *a = memory && l ? memory_find(address) : NULL;
    if (info->si_code <= 0) { /* sent by a process */
    } else if (l && memory && is_behind_stack(address))
        diagnose(NULL, ~0u, 0, "error", "memory", "Look for recursion that does not end, or for very large local arrays.", "stack overflow inside kernel %s",
                 demangle(l->kernel->name));
    else if (a && a->kind == MEMORY_REGISTERED)
        diagnose(NULL, ~0u, 0, "error", "memory", "Call cudaHostUnregister before the memory is freed, and no kernel that uses it behind that.",
                 "kernel %s uses host memory that was registered and has been unmapped (address 0x%llx)", demangle(l->kernel->name), (unsigned long long)address);
    else if (l)
        emulator_failed(signal_number, l);
    else if (memory) {
        if (memory_is_arena(address)) {
            char text[512];
            memory_describe(address, text, sizeof text);
            diagnose(NULL, ~0u, 0, "error", "memory", "Copy the data with cudaMemcpy first, or allocate it with cudaMallocManaged.",
                     "host code used a device pointer, %s", text);
        } else if (trace_enabled() || getenv("GRADER_EMULATOR_VERBOSE"))
            diagnose(NULL, ~0u, 0, "error", "memory", "This is in host code: check what malloc and fopen returned, that the arguments are there, and indices into host arrays.",
                     "host code accessed address 0x%llx, which it may not (segmentation fault)", (unsigned long long)address);
    }
    finish();
    signal(signal_number, SIG_DFL); /* not before: the next thread to crash would end the report */
    raise(signal_number);
}

static void stopped(int signal_number) {
    struct launch *l = launches_under_way;
    if (l) {
        static const char text[] = "emulator: stopped while a kernel was running\n";
        if (write(2, text, sizeof text - 1) < 0) _exit(124);
        char c[1100];
        trace_line("{\"kind\":\"diagnostic\",\"severity\":\"error\",\"tool\":\"sync\",\"message\":\"the program was stopped while this kernel was still running\","
                   "\"kernel\":%s,\"block\":null,\"thread\":null,\"file\":null,\"line\":null,\"advice\":\"Check its loops, and whether it waits for threads that cannot run.\"}",
                   json_string(demangle(l->kernel->name), c, sizeof c));
    }
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

__attribute__((constructor(101))) static void begin(void) {
    const char *where = getenv("GRADER_TRACE");
    if (where && strncmp(where, "fd:", 3) == 0)
        trace_file = fcntl(atoi(where + 3), F_DUPFD_CLOEXEC, 0);
    else if (where && *where)
        trace_file = open(where, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    trace_line("{\"kind\":\"start\",\"engine\":\"emulator\",\"device\":\"Emulated sm_80\",\"clock_ns\":%llu}", (unsigned long long)now_ns());
    atexit(finish); /* the last registered is called first */
    at_quick_exit(finish);
    at_quick_exit(finish_work);
    atexit(finish_work);
    u8 *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = 65536}, NULL);
    struct sigaction crash = {.sa_sigaction = crashed, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) sigaction(crashes[i], &crash, NULL);
    signal(SIGTERM, stopped);
    overtime_start();
}

/* ---- the API's errors ------------------------------------------------------------------------------------------------------- */

int sticky_error, pending_fault;
static __thread int last_error;

int api_result(const char *function, int code) {
    if (sticky_error) code = sticky_error;
    if (code != cudaSuccess) {
        if (code != cudaErrorNotReady) last_error = code;
        trace_line("{\"kind\":\"api_error\",\"function\":\"%s\",\"code\":%d,\"name\":\"%s\"}", function, code, error_name(code));
    }
    return code;
}

int api_error(const char *function, int code, const char *format, ...) {
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    diagnose(NULL, ~0u, 0, "error", "api", "", "%s: %s", function, text);
    return api_result(function, code);
}

int api_absent(const char *function, const char *what, const char *advice, const void *call) {
    char text[200];
    host_call = call;
    snprintf(text, sizeof text, "%c%s.", toupper(advice[0]), advice + 1);
    if (first_time(function, 0, 0)) diagnose(NULL, ~0u, 0, "note", "api", text, "%s: the emulator has no %s; the call gives cudaErrorNotSupported", function, what);
    return api_result(function, cudaErrorNotSupported);
}

int surface_fault(void) {
    if (pending_fault) sticky_error = pending_fault;
    return sticky_error;
}

cudaError_t cudaGetLastError(void) {
    int code = sticky_error ? sticky_error : last_error;
    last_error = 0;
    return (cudaError_t)code;
}
cudaError_t cudaPeekAtLastError(void) { return (cudaError_t)(sticky_error ? sticky_error : last_error); }
const char *cudaGetErrorName(cudaError_t code) { return error_name((int)code); }
const char *cudaGetErrorString(cudaError_t code) { return error_text((int)code); }
