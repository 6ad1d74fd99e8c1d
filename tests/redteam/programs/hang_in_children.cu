// Ends when a hundred children do, which is never.
// expect: time_limit | no_output
#include "hostile.h"

int main(int, char** argv) {
    for (int i = 0; i < 100; ++i) if (fork() == 0) { setsid(); for (;;) pause(); }
    while (wait(nullptr) > 0) {}
    return 0;
}
