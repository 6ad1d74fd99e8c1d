/* The trace, the findings, and the API's errors. */

#define _GNU_SOURCE
#include "emu.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int trace_file = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define SHOWN 20   /* findings on stderr, at most */
#define TRACED 100 /* findings in the trace, at most */
#define LINES 500000 /* in the trace, before only findings follow: its reader has limits, and one finding says that launches never end */
static u32 findings;

u64 clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (u64)t.tv_sec * 1000000000ull + (u64)t.tv_nsec;
}

u64 now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

void trace_open(void) {
    const char *where = getenv("GRADER_TRACE");
    if (where && strncmp(where, "fd:", 3) == 0)
        trace_file = fcntl(atoi(where + 3), F_DUPFD_CLOEXEC, 0);
    else if (where && *where)
        trace_file = open(where, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    trace_line("{\"kind\":\"start\",\"engine\":\"emulator\",\"device\":\"%s\",\"clock_ns\":%llu}", gpu->name, (unsigned long long)now_ns());
}

int trace_enabled(void) { return trace_file >= 0; }

void trace_line(const char *format, ...) {
    static u32 lines;
    if (trace_file < 0 || (__atomic_add_fetch(&lines, 1, __ATOMIC_RELAXED) > LINES && !strstr(format, "finding"))) return;
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

/* From libstdc++, which every CUDA program links. Weak, so that the runtime also links without it. */
extern char *__cxa_demangle(const char *, char *, size_t *, int *) __attribute__((weak));
const char *demangle(const char *name) {
    static struct { const char *name; char *text; } known[256];
    for (int i = 0; i < 256; i++) {
        if (known[i].name == name) return known[i].text;
        if (!known[i].name) {
            int status = -1;
            char *text = __cxa_demangle && strncmp(name, "_Z", 2) == 0 ? __cxa_demangle(name, NULL, NULL, &status) : NULL; /* "s" would be the type short */
            known[i].text = status == 0 ? text : (char *)name;
            known[i].name = name;
            return known[i].text;
        }
    }
    return name;
}

/* ---- one report per place ----------------------------------------------------------------------------------------- */

#define PLACES 1024
static struct { const void *of; u32 a, b; } known_places[PLACES];
static u32 known_count;
static u64 repeated;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

int first_time(const void *of, u32 a, u32 b) {
    int new = 1;
    pthread_mutex_lock(&known_lock);
    for (u32 i = 0; i < known_count && new; i++)
        if (known_places[i].of == of && known_places[i].a == a && known_places[i].b == b) new = 0;
    if (known_count == PLACES) new = 0;
    if (new) known_places[known_count].of = of, known_places[known_count].a = a, known_places[known_count++].b = b;
    else repeated++;
    pthread_mutex_unlock(&known_lock);
    return new;
}

u64 findings_repeated(void) { return repeated; }

void thread_of(struct warp *w, u32 lane, u32 *xyz) {
    for (int i = 0; i < 3; i++) xyz[i] = w->tid[i][lane & 31];
}

static int is_wanted(const char *tool) {
    const char *checks = getenv("GRADER_EMULATOR_CHECKS");
    return !checks || strstr(checks, tool) || strcmp(tool, "api") == 0;
}

/* The facts, one a line, as members of a JSON object. */
static void facts_json(char *facts, char *json, size_t size) {
    size_t n = 0;
    char *rest = facts, text[1600];
    for (char *fact; (fact = strsep(&rest, "\n"));) {
        char *end = fact + strcspn(fact, "=:");
        if (!*end || n + 2 * strlen(fact) + 16 > size) continue;
        int is_number = *end == '=';
        *end++ = 0;
        n += (size_t)snprintf(json + n, size - n, "%s\"%s\":%s", n ? "," : "", fact, is_number ? end : json_string(end, text, sizeof text));
    }
    json[n] = 0;
}

void finding(struct warp *w, u32 site, u32 lane, const char *check, const char *kind, const char *facts, ...) {
    char text[2000], json[4200], kernel[600] = "", a[2100], c[1100];
    if (!is_wanted(check)) return;
    va_list list;
    va_start(list, facts);
    size_t n_text = (size_t)vsnprintf(text, sizeof text, facts, list);
    va_end(list);
    pthread_mutex_lock(&lock);
    const char *file = NULL;
    u32 n = ++findings, line = 0, xyz[3] = {0};
    char where[160] = "\"block\":null,\"thread\":null", source[2300] = "\"file\":null,\"line\":null";
    if (w) {
        struct launch *l = w->block->launch;
        const struct module_info *info = l->module->info;
        if (site < info->site_count) line = info->sites[site].line, file = info->files[(u64)info->sites[site].file];
        snprintf(kernel, sizeof kernel, "%s", demangle(l->kernel->name));
        thread_of(w, lane, xyz);
        snprintf(where, sizeof where, "\"block\":[%u,%u,%u],\"thread\":[%u,%u,%u]", w->ctaid[0], w->ctaid[1], w->ctaid[2], xyz[0], xyz[1], xyz[2]);
    } else
        line = interpreted_line(host_call, &file);
    if (line) snprintf(source, sizeof source, "\"file\":%s,\"line\":%u", json_string(file, a, sizeof a), line);
    if (!w && !line && n_text < sizeof text) place_facts("\nhost", &host_call, 1, text + n_text, sizeof text - n_text);
    facts_json(text, json, sizeof json);
    const char *name = w ? json_string(kernel, c, sizeof c) : "null";
    if (n <= TRACED) trace_line("{\"kind\":\"finding\",\"is\":\"%s\",\"kernel\":%s,%s,%s,\"facts\":{%s}}", kind, name, where, source, json);
    if (n <= SHOWN && !trace_enabled()) { /* a program that is run by hand */
        fflush(stdout);
        fprintf(stderr, "%s: {%s,\"kernel\":%s,%s,%s}\n", kind, source, name, where, json);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- the API's errors ------------------------------------------------------------------------------------------------------- */

static __thread int last_error;

static const struct error { int code; const char *name, *text; } ERRORS[] = {
#include "errors.inc"
    {-1, "unrecognized error code", "unrecognized error code"},
};
static const struct error *error_of(int code) {
    const struct error *e = ERRORS;
    while (e->code != code && e->code != -1) e++;
    return e;
}

int api_result(const char *function, int code) {
    if (sticky_error) code = sticky_error;
    if (code != cudaSuccess) {
        if (code != cudaErrorNotReady) last_error = code;
        trace_line("{\"kind\":\"api_error\",\"function\":\"%s\",\"code\":%d,\"name\":\"%s\"}", function, code, error_of(code)->name);
    }
    return code;
}

int api_error(const char *function, int code, const char *kind, const char *facts, ...) {
    char text[1024];
    va_list list;
    va_start(list, facts);
    vsnprintf(text, sizeof text, facts, list);
    va_end(list);
    finding(NULL, ~0u, 0, "api", kind, "function:%s\n%s", function, text);
    return api_result(function, code);
}

int api_absent(const char *function, const char *what, const char *advice, const void *call) {
    host_call = call;
    if (first_time(function, 0, 0)) finding(NULL, ~0u, 0, "api", "emulator_lacks", "function:%s\nwhat:%s\ninstead:%s", function, what, advice);
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
const char *cudaGetErrorName(cudaError_t code) { return error_of((int)code)->name; }
const char *cudaGetErrorString(cudaError_t code) { return error_of((int)code)->text; }
