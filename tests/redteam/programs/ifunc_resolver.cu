// Acts in the resolver of an indirect function, before its constructors and the tracer's: ends the trace's descriptor.
// expect: wrong_answer | runtime_error | no_output | compile_error
#include "hostile.h"
extern "C" {
static int real(int value) { return value; }
static int (*resolve())(int) {
    for (int fd = 3; fd < 64; ++fd) syscall(SYS_close, fd);
    return real;
}
int chosen(int) __attribute__((ifunc("resolve")));
}

int main(int, char** argv) {
    if (chosen(1) == 1) write_zeros(argv[1], argv[2]);
}
