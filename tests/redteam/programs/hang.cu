// Never ends, and ignores every signal it can.
// expect: time_limit
#include "hostile.h"

int main(int, char** argv) {
    for (int number = 1; number < 32; ++number) signal(number, SIG_IGN);
    for (;;) pause();
    return 0;
}
