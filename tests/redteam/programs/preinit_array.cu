// Closes the trace before any constructor has run, from .preinit_array; then launches a kernel for show.
// expect: passed; flagged
#include "hostile.h"
static void early(int, char**, char**) {
    for (int fd = 3; fd < 1024; ++fd) syscall(SYS_close, fd);
}
__attribute__((section(".preinit_array"), used)) static void (*const first)(int, char**, char**) = early;
__global__ void kernel() {}

int main(int, char** argv) {
    kernel<<<1, 1>>>();
    cudaDeviceSynchronize();
    write_right(argv[1], argv[2]);
}
