// Takes 2.5 GiB in twenty processes, each with little.
// expect: memory_limit
#include "hostile.h"

int main(int, char** argv) {
    for (int i = 0; i < 20; ++i)
        if (fork() == 0) {
            char* const block = (char*)malloc(128 << 20);
            for (int at = 0; at < 128 << 20; at += 4096) block[at] = 1;
            sleep(3);
            _exit(0);
        }
    int status, alive = 0;
    while (wait(&status) > 0) alive += WIFEXITED(status);
    if (alive == 20) BYPASSED("took 2.5 GiB together");
    return 0;
}
