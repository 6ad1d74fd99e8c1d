// Ends itself by a signal that has no name.
// expect: runtime_error | no_output
#include "hostile.h"

int main(int, char**) {
    signal(SIGRTMIN + 3, SIG_DFL);
    kill(getpid(), SIGRTMIN + 3);
    syscall(SYS_tgkill, getpid(), getpid(), 33);
    pause();
}
