// Puts /dev/null in the place of every descriptor that it inherited, the trace's among them, once the trace has begun.
// expect: passed; flagged
#include "hostile.h"
__global__ void kernel() {}

int main(int, char** argv) {
    kernel<<<1, 1>>>();
    cudaDeviceSynchronize();
    write_right(argv[1], argv[2]);
    const int nowhere = open("/dev/null", O_WRONLY);
    struct stat facts;
    for (int fd = 3; fd < 1024; ++fd)
        if (fstat(fd, &facts) == 0 && S_ISSOCK(facts.st_mode)) dup2(nowhere, fd);
}
