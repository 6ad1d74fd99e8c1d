// Takes leases and locks on its input and output, so that who opens them waits.
// expect: passed; within 40 s
#include "hostile.h"
#include <sys/file.h>

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    signal(SIGIO, SIG_IGN);
    for (const char* path : {(const char*)argv[1], (const char*)argv[2], (const char*)argv[0]}) {
        const int fd = open(path, O_RDONLY);
        fcntl(fd, F_SETLEASE, F_RDLCK);
        flock(fd, LOCK_EX);
        struct flock whole = {};
        whole.l_type = F_RDLCK;
        fcntl(fd, F_SETLK, &whole);
    }
}
