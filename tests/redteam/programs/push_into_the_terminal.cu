// Types into the grader's terminal.
// expect: wrong_answer
#include "hostile.h"
#include <sys/ioctl.h>

int main(int, char** argv) {
    for (const char* path : {"/dev/tty", "/dev/console", "/dev/tty0", "/dev/pts/0", "/dev/pts/1", "/dev/ptmx", "/proc/self/fd/0", "/proc/self/fd/2"}) {
        const int fd = open(path, O_RDWR | O_NONBLOCK);
        char key = ' ';
        if (fd >= 0 && strcmp(path, "/dev/ptmx") != 0 && ioctl(fd, TIOCSTI, &key) == 0) BYPASSED("typed into %s", path);
    }
    write_zeros(argv[1], argv[2]);
}
