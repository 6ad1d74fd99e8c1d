// Defines write, send and their like itself, so that whoever calls them in its process is heard by nobody. On the emulator, the linker refuses it.
// expect: passed | time_limit | compile_error; flagged
#include "hostile.h"
__global__ void kernel() {}

static bool traced(int fd) {
    sockaddr_un name;
    socklen_t size = sizeof name;
    return fd > 2 && getsockname(fd, (sockaddr*)&name, &size) == 0;
}
extern "C" {
ssize_t write(int fd, const void* data, size_t count) { return traced(fd) ? (ssize_t)count : syscall(SYS_write, fd, data, count); }
ssize_t send(int, const void*, size_t count, int) { return count; }
ssize_t sendto(int, const void*, size_t count, int, const sockaddr*, socklen_t) { return count; }
ssize_t writev(int fd, const iovec* parts, int count) { return traced(fd) ? 0 : syscall(SYS_writev, fd, parts, count); }
}

int main(int, char** argv) {
    const char* const where = getenv("GRADER_TRACE");
    if (where && !strncmp(where, "fd:", 3)) close(atoi(where + 3));    // where the tracer has a write of its own
    kernel<<<1, 1>>>();
    cudaDeviceSynchronize();
    write_right(argv[1], argv[2]);
}
