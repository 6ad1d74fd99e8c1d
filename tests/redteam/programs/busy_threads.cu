// Keeps every core busy for ever.
// expect: time_limit
#include "hostile.h"

int main(int, char** argv) {
    for (int i = 0; i < 8; ++i) if (fork() == 0) for (volatile long spin = 0;; spin = spin + 1) {}
    for (;;) pause();
    return 0;
}
