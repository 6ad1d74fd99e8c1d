// Asks the kernel to end other processes first when memory runs out.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    for (const char* path : {"/proc/self/oom_score_adj", "/proc/1/oom_score_adj"}) {
        const int fd = open(path, O_WRONLY);
        if (fd >= 0 && write(fd, "-900", 4) == 4) BYPASSED("%s is -900", path);
    }
    write_zeros(argv[1], argv[2]);
}
