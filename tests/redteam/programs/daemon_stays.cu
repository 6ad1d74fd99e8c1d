// Leaves a daemon that ignores every signal.
// expect: passed
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    for (int number = 1; number < 32; ++number) signal(number, SIG_IGN);
    call_myself("redteam-daemon");
    leave_daemon([] { sleep(25); });
    return 0;
}
