/* Where host code called the runtime, for reports. Compiled code: the offset of the return address in the program. The grader
 * finds the lines afterwards (grader/programs/host_lines.py), since a graded program may start no process, so no addr2line.
 * The replayer of plans, which uses the runtime as a library, reports the submission's line before each call
 * (emu_called_from). */

#define _GNU_SOURCE
#include "emu.h"
#include <ucontext.h>

#define MOST_FRAMES 16 /* MAX_NUMBERS in grader/findings/finding.py */

extern const char __executable_start[], etext[];
__thread const void *host_call;

/* Lines of a Python program. The address of an entry takes the place of a return address. */
#define INTERPRETED 4096u
static struct { char file[256]; u32 line; } interpreted[INTERPRETED];
static u32 interpreted_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
__thread const void *interpreted_call;

void emu_called_from(const char *file, u32 line) {
    pthread_mutex_lock(&lock);
    u32 i = 0;
    while (i < interpreted_count && (interpreted[i].line != line || strcmp(interpreted[i].file, file) != 0)) i++;
    if (i == interpreted_count && i < INTERPRETED) {
        snprintf(interpreted[i].file, sizeof interpreted[i].file, "%s", file);
        interpreted[i].line = line;
        interpreted_count++;
    }
    interpreted_call = i < INTERPRETED ? &interpreted[i] : NULL;
    pthread_mutex_unlock(&lock);
}

u32 interpreted_line(const void *address, const char **file) {
    u64 i = ((u64)address - (u64)interpreted) / sizeof *interpreted;
    if ((u64)address < (u64)interpreted || i >= INTERPRETED) return 0;
    *file = interpreted[i].file;
    return interpreted[i].line;
}

int is_in_program(const void *address) { return (u64)address - (u64)__executable_start < (u64)(etext - __executable_start); }

const char *place_facts(const char *of, const void *const *frames, int count, char *text, size_t size) {
    const char *file = "";
    u32 line = count ? interpreted_line(frames[0], &file) : 0;
    int n = 0;
    text[0] = 0;
    if (line) snprintf(text, size, "%s_file:%s\n%s_line=%u", of, file, of, line);
    for (int i = 0, kept = 0; i < count && kept < MOST_FRAMES; i++)
        if (is_in_program(frames[i]) && (size_t)n + 64 < size)
            n += snprintf(text + n, size - (size_t)n, "%s%s%llu", kept ? "" : of, kept ? "," : "_at=[", (unsigned long long)((u64)frames[i] - (u64)__executable_start - 1)), kept++;
    if (n) snprintf(text + n, size - (size_t)n, "]");
    return text;
}

/* An address just after the start of the instruction that crashed, like a return address. */
const void *code_address(const void *context) {
#if defined(__x86_64__)
    return (const void *)(((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] + 1);
#else
    return (const void *)(((const ucontext_t *)context)->uc_mcontext.pc + 1);
#endif
}
