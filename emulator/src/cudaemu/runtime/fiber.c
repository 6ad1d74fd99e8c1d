/* Switching between stacks. A switch saves what the C calling convention says a callee must preserve, and nothing else:
 * no signal mask, hence no system call. Each stack ends in inaccessible pages. When a program runs into them, the
 * handler in process.c reports a stack overflow. */

#include "emu.h"

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl fiber_switch\n"
        ".type fiber_switch,@function\n"
        "fiber_switch:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n"
        "    ret\n"
        ".globl fiber_begin\n"
        "fiber_begin:\n" /* r12: argument, r13: entry */
        "    mov %r12, %rdi\n"
        "    call *%r13\n"
        "    ud2\n");
void fiber_begin(void);
void *fiber_prepare(u8 *top, void (*entry)(void *), void *argument) {
    u64 *s = (u64 *)((u64)top & ~63ull);
    *--s = 0;
    *--s = 0; /* the entry sees a 16-byte aligned stack at its call */
    *--s = (u64)fiber_begin;
    *--s = 0;               /* rbp */
    *--s = 0;               /* rbx */
    *--s = (u64)argument;   /* r12 */
    *--s = (u64)entry;      /* r13 */
    *--s = 0;               /* r14 */
    *--s = 0;               /* r15 */
    return s;
}
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl fiber_switch\n"
        ".type fiber_switch,%function\n"
        "fiber_switch:\n"
        "    stp x19, x20, [sp, #-160]!\n"
        "    stp x21, x22, [sp, #16]\n    stp x23, x24, [sp, #32]\n    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n    stp d10, d11, [sp, #112]\n    stp d12, d13, [sp, #128]\n    stp d14, d15, [sp, #144]\n"
        "    mov x2, sp\n    str x2, [x0]\n    mov sp, x1\n"
        "    ldp x21, x22, [sp, #16]\n    ldp x23, x24, [sp, #32]\n    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n    ldp d10, d11, [sp, #112]\n    ldp d12, d13, [sp, #128]\n    ldp d14, d15, [sp, #144]\n"
        "    ldp x19, x20, [sp], #160\n"
        "    ret\n"
        ".globl fiber_begin\n"
        "fiber_begin:\n"
        "    mov x0, x19\n"
        "    blr x20\n"
        "    brk #0\n");
void fiber_begin(void);
void *fiber_prepare(u8 *top, void (*entry)(void *), void *argument) {
    u64 *s = (u64 *)((u64)top & ~63ull) - 20;
    memset(s, 0, 160);
    s[0] = (u64)argument;
    s[1] = (u64)entry;
    s[11] = (u64)fiber_begin; /* x30 */
    return s;
}
#else
#error "fibers are written for x86-64 and AArch64"
#endif
