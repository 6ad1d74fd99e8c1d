// Takes 2.5 GiB in twenty processes, each with little.
// expect: memory_limit | no_output
#include "hostile.h"

int main(int, char** argv) {
    for (int i = 0; i < 20; ++i)
        if (fork() == 0) {
            mmap(nullptr, 128 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
            sleep(1);
            _exit(0);
        }
    int status, alive = 0;
    while (wait(&status) > 0) alive += WIFEXITED(status);
    if (alive == 20) BYPASSED("took 2.5 GiB together");
    return 0;
}
