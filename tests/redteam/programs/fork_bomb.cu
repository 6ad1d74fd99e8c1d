// Forks as often as it can, 3000 times at most.
// expect: passed
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    int made = 0;
    for (int i = 0; i < 3000; ++i) {
        const pid_t child = fork();
        if (child == 0) { sleep(5); _exit(0); }
        made += child > 0;
    }
    if (made > 0) BYPASSED("%d processes", made);
    return 0;
}
