/* The loop that runs threaded code (ways.h). */
#include "warp.h"

void run_rows(struct warp *w, u8 *F, u32 m, template_function *const *templates, const u32 *code, const u32 *end) {
    do {
        const u32 *next = code + code[1];
        templates[code[0]](w, F, m, code + 2, next);
        code = next;
    } while (code < end);
}
